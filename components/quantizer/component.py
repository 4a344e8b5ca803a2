"""Quantizer: plans the quantization of a float model.

It converts the model to a float flatbuffer, takes the range of every activation over the calibration data, and writes down
what will be done to which operator. TFLiteExporter then carries the plan out without any data. So the plan, two small
JSON files, is what a person reviews, and what makes an export repeatable. With `qat` in its config it trains the model a
little further instead, with the rounding emulated.
"""

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import channel, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from tfx_edge.components import keys
from tfx_edge.components.quantizer import executor
from tfx_edge.schemas import EdgeError, QuantizationConfig
from tfx_edge.schemas.artifact_types import CalibrationData, QuantizationPlan


class QuantizerSpec(ComponentSpec):
    """Inputs, outputs and properties of Quantizer."""

    PARAMETERS = {
        keys.CONFIG: ExecutionParameter(type=str),
        keys.MODEL_FN: ExecutionParameter(type=str, optional=True),
        keys.MODULE_PATH: ExecutionParameter(type=str, optional=True),
    }
    INPUTS = {
        keys.FLOAT_MODEL: ChannelParameter(type=standard_artifacts.Model),
        keys.CALIBRATION_DATA: ChannelParameter(type=CalibrationData, optional=True),
        keys.TRANSFORM_GRAPH: ChannelParameter(type=standard_artifacts.TransformGraph, optional=True),
        keys.EXAMPLES: ChannelParameter(type=standard_artifacts.Examples, optional=True),
        keys.SCHEMA: ChannelParameter(type=standard_artifacts.Schema, optional=True),
    }
    OUTPUTS = {
        keys.MODEL: ChannelParameter(type=standard_artifacts.Model),
        keys.QUANTIZATION_PLAN: ChannelParameter(type=QuantizationPlan),
    }


class Quantizer(base_beam_component.BaseBeamComponent):
    """Quantization of a model by one scheme or, with rules, several; `int8` also by training (QAT).

    Outputs:
        model: the model that the plan is for, so that both go on together: a copy of the input, or with `qat` the trained model,
            which emulates int8, and `qat.json`, a `QatReport`.
        quantization_plan: `plan.json` (scheme, method, recipe, which operators stay float and why) and `ranges.json`; custom
            properties `scheme`, `method` and `float_model_digest`.

    Example:
        quantizer = Quantizer(
            model=pruner.outputs["model"],
            calibration_data=calibration_gen.outputs["calibration_data"],
            transform_graph=transform.outputs["transform_graph"],
            config=QuantizationConfig(scheme="int8", io_type="float32"),
        )
        exporter = TFLiteExporter(
            model=quantizer.outputs["model"],
            quantization_plan=quantizer.outputs["quantization_plan"],
            transform_graph=transform.outputs["transform_graph"],
        )

        quantizer = Quantizer(  # by training: needs no calibration data
            model=clusterer.outputs["model"],
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            config=QuantizationConfig(
                scheme="int8", qat=QatConfig(fine_tuning=FineTuningConfig(label_key="label", learning_rate=1e-4))
            ),
        )
    """

    SPEC_CLASS = QuantizerSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        model: channel.BaseChannel,
        calibration_data: channel.BaseChannel | None = None,
        transform_graph: channel.BaseChannel | None = None,
        config: QuantizationConfig | RuntimeParameter = QuantizationConfig(),
        examples: channel.BaseChannel | None = None,
        schema: channel.BaseChannel | None = None,
        model_fn: str | RuntimeParameter | None = None,
        module_path: str | RuntimeParameter | None = None,
    ) -> None:
        """Wires the component.

        Args:
            model: a float model, as a Trainer or Pruner saves it.
            calibration_data: of CalibrationGen; schemes `int8` and `int16x8` and corrections need it, and an `accuracy_target` uses it
                where its escalation may come to one of these.
            transform_graph: of the Transform before the Trainer; needed for a model that was saved with nothing but signatures on
                raw tf.Examples, and by `qat` for the schema of the examples.
            config: the scheme, or a RuntimeParameter that holds the config as JSON.
            examples: as the model was trained on them; `qat` and `accuracy_target` need them, nothing else reads them.
            schema: of the examples, for `qat` in a pipeline without Transform.
            model_fn: for a model without Keras metadata: what `qat` trains, or where layers that block a device must be rewritten;
                see `KerasComponent`.
            module_path: for `qat`, see `KerasComponent`.

        Raises:
            EdgeError: scheme `int8` without calibration_data, or `qat` or `accuracy_target` without examples or their schema.
        """
        if isinstance(config, QuantizationConfig) and (config.qat or config.accuracy_target):
            what, use = ("qat", "train on") if config.qat else ("accuracy_target", "measure on")
            if examples is None:
                raise EdgeError(f"Quantizer: {what} without examples to {use}; pass transform.outputs['transformed_examples']")
            if transform_graph is None and schema is None:
                raise EdgeError(
                    f"Quantizer: {what} with neither transform_graph nor schema, so the features of the examples are unknown; "
                    "pass transform.outputs['transform_graph'], or without a Transform, the schema of the examples"
                )
        if isinstance(config, QuantizationConfig) and config.needs_calibration and calibration_data is None:
            raise EdgeError(
                f"Quantizer: scheme {config.scheme!r}{' with rules' if config.rules else ''} without calibration_data; give it "
                "CalibrationGen's output, or choose 'dynamic_range', which needs no data"
            )
        super().__init__(
            QuantizerSpec(
                **{
                    keys.FLOAT_MODEL: model,
                    keys.CALIBRATION_DATA: calibration_data,
                    keys.TRANSFORM_GRAPH: transform_graph,
                    keys.EXAMPLES: examples,
                    keys.SCHEMA: schema,
                    keys.MODEL_FN: model_fn,
                    keys.MODULE_PATH: module_path,
                    keys.CONFIG: config.to_json() if isinstance(config, QuantizationConfig) else config,
                    keys.MODEL: channel.Channel(standard_artifacts.Model),
                    keys.QUANTIZATION_PLAN: channel.Channel(QuantizationPlan),
                }
            )
        )
