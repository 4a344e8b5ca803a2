"""A standard TFX pipeline on one machine around an edge stage: what the example pipelines have in common."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from tfx.components.example_gen.import_example_gen.component import ImportExampleGen
from tfx.components.example_validator.component import ExampleValidator
from tfx.components.pusher.component import Pusher
from tfx.components.schema_gen.component import SchemaGen
from tfx.components.statistics_gen.component import StatisticsGen
from tfx.components.trainer.component import Trainer
from tfx.components.transform.component import Transform
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import example_gen_pb2, pusher_pb2, trainer_pb2

from tfx_edge.components.model_importer.component import ModelImporter
from tfx_edge.pipelines.beam_args import IN_MEMORY
from tfx_edge.pipelines.example_files import SPLITS
from tfx_edge.pipelines.stage import EdgeStage
from tfx_edge.pipelines.variants import ParetoStage


def local_pipeline(
    root: str,
    data: str,
    *,
    name: str,
    user_code: str,
    stage: Callable[[BaseComponent, Transform], EdgeStage | ParetoStage],
    custom_config: Mapping[str, Any] | None = None,
    importer: ModelImporter | None = None,
    enable_cache: bool = True,
) -> Pipeline:
    """Builds a pipeline for `LocalDagRunner`: ImportExampleGen to Trainer, the stage, and a Pusher behind one that doesn't promote.

    Args:
        root: folder for `metadata.db`, the artifacts and `pushed/`.
        data: folder that `write_splits` wrote.
        name: of the pipeline in the metadata.
        user_code: import path of the module with `preprocessing_fn` and, for the Trainer, `run_fn`.
        stage: gives the tail behind the Trainer.
        custom_config: for run_fn.
        importer: brings the model in place of a Trainer.
        enable_cache: whether a component with unchanged inputs is skipped.
    """
    splits = [example_gen_pb2.Input.Split(name=split, pattern=f"{split}/*") for split in SPLITS]
    example_gen = ImportExampleGen(input_base=data, input_config=example_gen_pb2.Input(splits=splits))
    statistics_gen = StatisticsGen(examples=example_gen.outputs["examples"])
    schema_gen = SchemaGen(statistics=statistics_gen.outputs["statistics"], infer_feature_shape=True)
    example_validator = ExampleValidator(statistics=statistics_gen.outputs["statistics"], schema=schema_gen.outputs["schema"])
    transform = Transform(
        examples=example_gen.outputs["examples"], schema=schema_gen.outputs["schema"], preprocessing_fn=f"{user_code}.preprocessing_fn"
    )
    trainer = importer or Trainer(
        run_fn=f"{user_code}.run_fn",
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema_gen.outputs["schema"],
        train_args=trainer_pb2.TrainArgs(splits=["train"]),
        eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
        custom_config=dict(custom_config or {}),
    )
    edge = stage(trainer, transform)
    tail: list[BaseComponent] = list(edge)
    if not (isinstance(edge, EdgeStage) and edge.pushed_model is not None):
        # os.path.join, because a Path makes gs:/ of gs://, which root may be on Kubeflow.
        filesystem = pusher_pb2.PushDestination.Filesystem(base_directory=os.path.join(root, "pushed"))
        destination = pusher_pb2.PushDestination(filesystem=filesystem)
        tail.append(Pusher(model=edge.model, model_blessing=edge.blessing, push_destination=destination))
    return Pipeline(
        pipeline_name=name,
        pipeline_root=os.path.join(root, "artifacts"),
        components=[example_gen, statistics_gen, schema_gen, example_validator, transform, trainer, *tail],
        enable_cache=enable_cache,
        metadata_connection_config=metadata.sqlite_metadata_connection_config(os.path.join(root, "metadata.db")),
        beam_pipeline_args=list(IN_MEMORY),
    )
