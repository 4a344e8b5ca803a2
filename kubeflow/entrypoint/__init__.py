"""What runs in every container of a package: KFP's words in, a TFX executor, KFP's words out.

python -m tfx_edge.kubeflow.entrypoint --artifact_types ... [--driver_module ...] --executor_class_path ...
--json_serialized_invocation_args '{{$}}' --json_serialized_inputs_spec_args ... [Beam's arguments]

light_imports.py   what TFX would import at start-up, and no executor needs
places.py          URIs to the paths at which the launcher put their files
task.py            the command line and the executor input as TFX's own code takes them
run.py             driver, executor, executor output
"""
