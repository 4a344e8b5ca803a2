"""From a TFX pipeline to what Kubeflow Pipelines or Vertex AI runs.

factory.py     finds the function that makes the pipeline, and calls it with arguments and inputs
inputs.py      stand-ins for the pipeline's inputs, and where they ended up in the compiled specification
refusals.py    what KFP can't run, told before anything is compiled
tfx_job.py     the PipelineJob of TFX's own runner
names.py       names that Argo takes
containers.py  what the environment says about a component's container
rewrite.py     the PipelineJob to the package
vertex.py      the PipelineJob as Vertex AI takes it
manifests.py   the package as Kubernetes resources
"""
