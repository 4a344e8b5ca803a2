"""CalibrationGen's interface."""

from tfx.dsl.components.base.base_beam_component import BaseBeamComponent
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from tfx_edge.components import keys
from tfx_edge.components.calibration_gen.executor import Executor
from tfx_edge.components.known_features import check_features_known
from tfx_edge.schemas import CalibrationConfig
from tfx_edge.schemas.artifact_types import CalibrationData


class CalibrationGenSpec(ComponentSpec):
    """What CalibrationGen takes and gives."""

    PARAMETERS = {keys.CONFIG: ExecutionParameter(type=str)}
    INPUTS = {
        keys.EXAMPLES: ChannelParameter(type=standard_artifacts.Examples),
        keys.TRANSFORM_GRAPH: ChannelParameter(type=standard_artifacts.TransformGraph, optional=True),
        keys.SCHEMA: ChannelParameter(type=standard_artifacts.Schema, optional=True),
    }
    OUTPUTS = {keys.CALIBRATION_DATA: ChannelParameter(type=CalibrationData)}


class CalibrationGen(BaseBeamComponent):
    """Draws a small sample of the transformed examples, from which Quantizer measures the ranges of a model's activations.

    The same data and seed give the same sample, byte for byte, whatever the shards, their order, the Beam runner and its
    workers: a record is in it or not by the keyed hash of its content alone. Equal records count once.

        calibration_gen = CalibrationGen(
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            config=CalibrationConfig(num_examples=500, strategy="stratified", stratify_by="label"),
        )
        quantizer = Quantizer(model=..., calibration_data=calibration_gen.outputs["calibration_data"])

    Its output, `calibration_data`, holds the sample as tf.Examples (`Split-calibration/`), their schema (`schema.pbtxt`)
    and what is known about them (`calibration.json`, `schemas.CalibrationSummary`); `count`, `strategy` and `digest` are
    custom properties of the artifact too.
    """

    SPEC_CLASS = CalibrationGenSpec
    EXECUTOR_SPEC = BeamExecutorSpec(Executor)

    def __init__(
        self,
        examples: BaseChannel,
        transform_graph: BaseChannel | None = None,
        schema: BaseChannel | None = None,
        config: CalibrationConfig | RuntimeParameter | None = None,
    ) -> None:
        """Makes the component.

        Args:
            examples: of type `Examples`, as the model is trained on them: Transform's output, or where a pipeline has no
                Transform, ExampleGen's.
            transform_graph: Transform's, for the schema of the transformed features.
            schema: of the examples, for a pipeline without Transform; `transform_graph` goes first where both are given.
            config: how to sample; without it, 200 examples of the split "train", uniformly. A RuntimeParameter holds the
                JSON of a `CalibrationConfig`.

        Raises:
            EdgeError: neither `transform_graph` nor `schema` is given.
        """
        check_features_known("CalibrationGen", transform_graph, schema)
        if config is None:
            config = CalibrationConfig()
        super().__init__(
            CalibrationGenSpec(
                examples=examples,
                transform_graph=transform_graph,
                schema=schema,
                config=config.to_json() if isinstance(config, CalibrationConfig) else config,
                calibration_data=Channel(type=CalibrationData),
            )
        )
