"""The PipelineJob that TFX's own runner compiles."""

import tempfile
from typing import Any

from tfx_edge.kubeflow.compile.factory import Made, told
from tfx_edge.schemas import EdgeError


def tfx_job(made: Made, image: str, images: dict[str, str]) -> dict[str, Any]:
    """Compiles a pipeline.

    Args:
        made: the pipeline, and the exit handler.
        image: of every component.
        images: of single components, by id.

    Returns:
        A PipelineJob of schema 2.1 as plain data.

    Raises:
        EdgeError: TFX doesn't compile it.
    """
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as v2

    _forget_keys(made.pipeline)
    config = v2.KubeflowV2DagRunnerConfig(default_image={"default_image_path": image, **images}, use_pipeline_spec_2_1=True)
    with tempfile.TemporaryDirectory() as folder:  # where it would write; it makes the folder in any case
        runner = v2.KubeflowV2DagRunner(config=config, output_dir=folder)
        if made.exit_handler is not None:
            runner.set_exit_handler(made.exit_handler)
        try:
            job: dict[str, Any] = runner.run(made.pipeline, write_out=False)
        except Exception as error:  # TFX raises any kind at what it doesn't compile, KeyError and AssertionError too
            raise EdgeError(f"pipeline {made.pipeline.pipeline_info.pipeline_name!r}: TFX can't compile it: {told(error)}") from error
    return job


def _forget_keys(pipeline: Any) -> None:
    """A condition holds keys from when its Cond was entered, which TFX takes for inputs of the first component in it."""
    from tfx.dsl.experimental.conditionals import conditional
    from tfx.dsl.placeholder.placeholder import ChannelWrappedPlaceholder

    for node in pipeline.components:
        for predicate in conditional.get_predicates(node, pipeline.dsl_context_registry):
            for part in predicate.traverse():
                if isinstance(part, ChannelWrappedPlaceholder):
                    part.set_key(None)
