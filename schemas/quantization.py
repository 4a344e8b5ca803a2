"""Quantizer: the scheme asked for, and the plan that the exporter carries out without any data."""

from typing import Any, Literal

from pydantic import Field

from tfx_edge.schemas.accuracy import AccuracyTarget, SearchTrial
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.conversion import ConversionConfig
from tfx_edge.schemas.corrections import CorrectedLayer, Correction, check_corrections
from tfx_edge.schemas.qat import QatConfig
from tfx_edge.schemas.ranges import RangeConfig
from tfx_edge.schemas.schemes import CALIBRATED, GRANULARITIES, SCHEMES, Granularity, IoType, Scheme, SchemeRule, check_granularity

Method = Literal["ptq", "qat"]
Backend = Literal["litert", "converter"]

_CORRECTING = 256  # calibration examples that corrections learn from by default


class QuantizationConfig(Config):
    """Quantization of the whole model, after training or, with `qat`, by training."""

    scheme: Scheme = Field(default="int8", description=SCHEMES)
    io_type: IoType = Field(
        default="float32",
        description="The type of the model's inputs and outputs: int8 with scheme int8 and int16 with int16x8 spare a conversion.",
    )
    granularity: Granularity = Field(default="channel", description=GRANULARITIES)
    integer_only: bool = Field(
        default=False,
        description="Refuses a model that keeps a float tensor anywhere, as for hardware without floats: io_type int8 or int16.",
    )
    backend: Backend | Literal["auto"] = Field(
        default="litert",
        description="litert: litert-quantizer. converter: TFLiteConverter's quantizer, for scheme int8 without rules, where the first "
        "leaves operators in float (LSTM). auto: both, and what is smaller at equal error.",
    )
    conversion: ConversionConfig = Field(
        default=ConversionConfig(), description="How the float flatbuffer is made; TFLiteExporter makes it in the same way."
    )
    rules: tuple[SchemeRule, ...] = Field(default=(), description="Operators with a scheme of their own; later rules win.")
    ranges: RangeConfig = Field(default=RangeConfig(), description="How activation ranges come from the calibration data.")
    batch_size: int = Field(default=32, ge=1, description="Examples a step while activation ranges are collected.")
    corrections: tuple[Correction, ...] = Field(
        default=(), description="What is done to the float model's constants before they are rounded, in this order."
    )
    qat: QatConfig | None = Field(
        default=None,
        description="int8 scheme: quantization-aware training, which takes its ranges from the training examples and needs no calibration "
        "data; None quantizes after training.",
    )
    accuracy_target: AccuracyTarget | None = Field(
        default=None,
        description="Turns on the search for the smallest model that keeps its accuracy, starting from this config; None takes it as is.",
    )

    @property
    def method(self) -> Method:
        """Whether the ranges come from calibration after training, or from training itself."""
        return "ptq" if self.qat is None else "qat"

    @property
    def num_bits(self) -> int:
        """Of the integers that activations become."""
        return 16 if self.scheme == "int16x8" else 8

    @property
    def examples_for_corrections(self) -> int:
        """How many calibration examples must be held in memory for corrections, those of a search included."""
        return max([_CORRECTING, *(c.examples for c in self.corrections if c.kind != "cross_layer_equalization")])

    @property
    def needs_ranges(self) -> bool:
        """Whether activations are quantized by ranges that only calibration data can tell."""
        return self.qat is None and any(scheme in CALIBRATED for scheme in (self.scheme, *(rule.scheme for rule in self.rules)))

    @property
    def needs_calibration(self) -> bool:
        """Whether calibration data is needed, for ranges or for corrections that learn from it."""
        return self.needs_ranges or bool(self.corrections)

    @property
    def uses_calibration(self) -> bool:
        """Whether calibration data is of use: the config needs it, or the search may come to a config that does."""
        return self.needs_calibration or (self.accuracy_target is not None and self.accuracy_target.uses_calibration)

    def check(self) -> None:
        check_corrections(self.corrections, [self.scheme, *(rule.scheme for rule in self.rules)], trained=self.qat is not None)
        if self.io_type != "float32" and (self.scheme, self.io_type) not in (("int8", "int8"), ("int16x8", "int16")):
            raise ValueError(
                f"io_type {self.io_type!r} with scheme {self.scheme!r}; 'int8' goes with scheme 'int8', 'int16' with 'int16x8', and "
                "'float32' with any"
            )
        check_granularity(self.scheme, self.granularity)
        if self.integer_only and self.io_type == "float32":
            raise ValueError("integer_only with io_type 'float32'; set io_type 'int8' with scheme 'int8', or 'int16' with 'int16x8'")
        if self.backend == "converter" and (self.qat is not None or self.rules or self.scheme != "int8"):
            what = "qat" if self.qat else "rules" if self.rules else f"scheme {self.scheme!r}"
            raise ValueError(f"backend 'converter' with {what}; it does scheme 'int8' without rules: set backend 'litert'")
        if self.accuracy_target is not None and (self.qat is not None or self.scheme == "float32"):
            why = "qat, which is the last resort: give it to accuracy_target" if self.qat else "scheme 'float32', which loses nothing"
            raise ValueError(f"accuracy_target with {why}")
        if self.conversion.signatures and (self.qat is not None or (self.accuracy_target and self.accuracy_target.qat)):
            raise ValueError("signatures with qat, which trains the Keras model and not its signatures; leave one of them out")
        if len(self.conversion.signatures) > 1 and (self.needs_calibration or self.accuracy_target is not None):
            what = "accuracy_target" if self.accuracy_target else f"scheme {self.scheme!r} or corrections"
            raise ValueError(
                f"{len(self.conversion.signatures)} signatures with {what}, which take one graph; export each on its own, or choose "
                "'dynamic_range', 'float16' or 'int8_weights'"
            )
        if self.conversion.select_tf_ops and self.scheme != "float32":
            raise ValueError(f"select_tf_ops with scheme {self.scheme!r}; such a model is exported as 'float32' alone")
        if self.qat is None:
            return
        if self.scheme != "int8":
            raise ValueError(f"qat with scheme {self.scheme!r}; quantization-aware training is for scheme 'int8' alone")
        if self.rules or self.granularity != "channel":
            raise ValueError("qat with rules or granularity 'tensor'; which layers it quantizes says QatConfig.layers: leave these out")


class FloatOp(Config):
    """An operator of the flatbuffer that runs in float after quantization, and why."""

    op: str = Field(description="LiteRT's name of the operator, for example SOFTMAX.")
    tensor: str = Field(description="Name of its first output.")
    reason: str


class QuantizationPlan(Config):
    """`plan.json`: all that turns the float flatbuffer into the quantized one, but the ranges."""

    config: QuantizationConfig
    method: Method = Field(
        default="ptq",
        description="ptq: litert-quantizer carries out the recipe. qat: the model emulates int8, and TFLiteConverter takes it at its word.",
    )
    backend: Backend = Field(default="litert", description="Method ptq: who carries it out; litert by the recipe, converter by the config.")
    backend_reason: str | None = Field(default=None, description="With backend auto: sizes and errors of both, and why this one.")
    recipe: tuple[dict[str, Any], ...] = Field(
        description="Recipe of litert-quantizer: entries of regex, operation and op_config; empty for float32, qat and backend converter."
    )
    float_ops: tuple[FloatOp, ...] = Field(description="Every operator that stays float.")
    size_reason: str | None = Field(default=None, description="Why the file isn't smaller than the float one, where it isn't.")
    float_model_digest: str = Field(description="sha256 of the float flatbuffer that the plan was made for; it fits no other.")
    calibration_digest: str | None = Field(default=None, description="Digest of the calibration data, where the scheme needs some.")
    corrected_digest: str | None = Field(
        default=None, description="sha256 of the float flatbuffer with constants.npz in it, where the config has corrections."
    )
    corrected: tuple[CorrectedLayer, ...] = Field(default=(), description="What the corrections did to each layer, or why nothing.")
    trials: tuple[SearchTrial, ...] = Field(default=(), description="With accuracy_target: what was tried, in that order.")
    decision: str = Field(default="", description="With accuracy_target: what it took to keep the accuracy, or why it can't be kept.")
    warnings: tuple[str, ...] = Field(default=(), description="What a person should know before trusting the plan.")

    def check(self) -> None:
        if (self.method == "qat") != (self.config.qat is not None):
            raise ValueError(
                f"method {self.method!r} with a config {'without' if self.config.qat is None else 'with'} qat, so the plan was changed by "
                "hand; run Quantizer again"
            )
        quantizes = self.config.scheme != "float32" or bool(self.config.rules)
        if self.method == "ptq" and self.backend == "litert" and quantizes and not self.recipe:
            raise ValueError(
                f"an empty recipe with scheme {self.config.scheme!r}, so the model would stay float; set scheme 'float32' for that, or run "
                "Quantizer again"
            )
