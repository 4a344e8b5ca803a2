"""A function that makes a pipeline to the text of a package."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from tfx_edge.kubeflow import package
from tfx_edge.kubeflow.compile.factory import Made, load, make
from tfx_edge.kubeflow.compile.inputs import names_in
from tfx_edge.kubeflow.compile.manifests import manifests
from tfx_edge.kubeflow.compile.refusals import refuse, refuse_secrets
from tfx_edge.kubeflow.compile.rewrite import rewrite
from tfx_edge.kubeflow.compile.tfx_job import tfx_job
from tfx_edge.kubeflow.compile.vertex import vertex_job
from tfx_edge.schemas import EdgeError, KubeflowConfig

Target = Literal["kfp", "vertex"]


def compile_pipeline(
    function: str,
    config: KubeflowConfig,
    *,
    image: str | None = None,
    arguments: Mapping[str, str] | None = None,
    target: Target = "kfp",
    version: str | None = None,
) -> str:
    """Compiles a pipeline; the same input gives the same text, on one TFX line.

    Args:
        function: `package.module:function`, which gives a TFX pipeline, or a pair of it and an exit handler.
        config: of the environment.
        image: of every component, in place of the config's.
        arguments: of the function, in place of the config's.
        target: kfp: a package of open-source Kubeflow Pipelines 2. vertex: a PipelineJob of Vertex AI.
        version: with target kfp: the name of the version, to write Kubernetes resources in place of the package.

    Returns:
        YAML, or for Vertex AI JSON.

    Raises:
        EdgeError: no such function or image, or something that the target can't run; the text names the component.
    """
    wanted = image or config.defaults.image or config.image
    if wanted is None:
        raise EdgeError("no image; give --image, or image in the environment's file: it is what every component runs in")
    images = {name: own.image for name, own in config.components.items() if own.image}
    for each in (wanted, *images.values()):
        if config.require_digest and "@sha256:" not in each:
            raise EdgeError(f"image {each!r} has no digest, and require_digest is set; name it repository@sha256:...")
    made = make(load(function), config, arguments or {})
    if target == "kfp":
        refuse(made.pipeline)
    job = tfx_job(made, wanted, images)
    _refuse_unknown(config, job["pipelineSpec"])
    _refuse_places(config)
    if target == "vertex":
        job = vertex_job(job, config, made.inputs)
        _refuse_unused(made, job["pipelineSpec"])
        refuse_secrets(job["pipelineSpec"])
        return json.dumps(job, indent=2, sort_keys=True) + "\n"
    documents = rewrite(job, config, made.inputs)
    _refuse_unused(made, documents[0])
    refuse_secrets(documents[0])
    return package.dump(documents if version is None else manifests(documents, version))


def _refuse_unknown(config: KubeflowConfig, spec: dict[str, Any]) -> None:
    there = {name for name, component in spec["components"].items() if "dag" not in component}
    unknown = sorted(set(config.components) - there)
    if unknown:
        raise EdgeError(f"KubeflowConfig.components has {unknown[0]!r}; the pipeline's components are {', '.join(sorted(there))}")


def _refuse_unused(made: Made, spec: dict[str, Any]) -> None:
    """An input that got nowhere: the function has compared it, say, and the stand-in gave the answer for every run to come."""
    # The target has a root and a metadata store of its own; functions for LocalDagRunner name theirs all the same.
    own = [made.pipeline.pipeline_info.pipeline_root, str(made.pipeline.metadata_connection_config)]
    there = {*spec["root"].get("inputDefinitions", {}).get("parameters", {}), *names_in(own)}
    for name in made.inputs:
        if name not in there:
            raise EdgeError(
                f"input {name!r} got nowhere into the pipeline: the function decided by it, or doesn't use it; give it a value by "
                f"--arg {name}=..."
            )


def _refuse_places(config: KubeflowConfig) -> None:
    """Dataflow's workers see Cloud Storage alone."""
    for name in ("", *config.components):
        beam = config.component(name).beam
        if beam is not None and beam.kind == "dataflow" and not (config.pipeline_root or "").startswith("gs://"):
            title = f"component {name!r}" if name else "defaults"
            raise EdgeError(
                f"{title}: beam is dataflow and pipeline_root {config.pipeline_root!r}; Dataflow needs one that starts with gs://"
            )
