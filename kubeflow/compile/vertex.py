"""The PipelineJob as Vertex AI takes it: TFX's own, with the pipeline's inputs and what the environment says about containers.

Vertex AI does what open-source KFP doesn't (resolvers, drivers before the cache, types of artifacts), so TFX's names and entry point stay.
"""

import copy
from collections.abc import Mapping
from typing import Any

from tfx_edge.kubeflow.compile.containers import apply_container, apply_task, kubernetes, of_tfx, parted
from tfx_edge.kubeflow.compile.inputs import connect, kfp_placeholder, refuse_stand_ins
from tfx_edge.schemas import EdgeError, KubeflowConfig, Parameter

_URI = "artifact_uri"


def vertex_job(job: dict[str, Any], config: KubeflowConfig, inputs: Mapping[str, Parameter]) -> dict[str, Any]:
    """Completes a PipelineJob.

    Raises:
        EdgeError: no pipeline_root on Google Cloud Storage, an exit handler, or something of Kubernetes'.
    """
    job = copy.deepcopy(job)
    spec = job["pipelineSpec"]
    root = config.pipeline_root or ""
    if not root.startswith("gs://"):
        raise EdgeError(f"KubeflowConfig.pipeline_root: {root or None!r}; Vertex AI needs one that starts with gs://")
    if any("dag" in component for component in spec["components"].values()):
        raise EdgeError("an exit handler with inputs of the pipeline isn't compiled for Vertex AI; leave it out")
    job["runtimeConfig"]["gcsOutputDirectory"] = root
    taken: set[str] = set()
    for task in spec["root"]["dag"]["tasks"].values():
        name = task["componentRef"]["name"]
        component, own = spec["components"][name], config.component(name)
        executor = spec["deploymentSpec"]["executors"][component["executorLabel"]]
        if "container" in executor:
            if asked := kubernetes(own):
                raise EdgeError(f"component {name!r}: {', '.join(sorted(asked))} is for Kubernetes, which Vertex AI hides; leave it out")
            container = executor["container"]
            apply_container(container, own)
            if of_tfx(container):
                arguments, beam = parted(container, own)
                container["args"] = [*arguments, *beam]
            apply_task(task, own)
        taken.update(connect(task, component, f"component {name!r}", placeholder=kfp_placeholder))
        if "importer" in executor and "componentInputParameter" in task["inputs"]["parameters"][_URI]:
            executor["importer"]["artifactUri"] = {"runtimeParameter": _URI}  # TFX took the stand-in for the URI itself
    for name in sorted(taken):
        parameter = inputs.get(name, Parameter())
        known = spec["root"].setdefault("inputDefinitions", {}).setdefault("parameters", {})
        known.setdefault(name, {"parameterType": parameter.type})
        if parameter.default is not None:
            known[name]["defaultValue"] = parameter.default
    refuse_stand_ins(spec)
    return job
