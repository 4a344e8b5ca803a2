"""Configs to quantized flatbuffers, many of one float flatbuffer.

What `make_plan` and `apply_plan` do for one config, without what is the same for all of them: litert-quantizer parses the float
flatbuffer and its ranges are laid out once, and nothing is loaded to see whether it loads, since measuring it does. Configs of another
backend, or with blocks, go the long way.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from tfx_edge.litert.backends.litert import completed, one_line_errors, statistics, with_unique_names
from tfx_edge.litert.backends.wiring import Outputs, outputs
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.recipes import block_size, recipe
from tfx_edge.litert.weights import check_weights, sharing_operators
from tfx_edge.schemas import QuantizationConfig, TensorRanges

Examples = Callable[[], Mapping[str, NDArray[Any]]]


class Prepared(Protocol):
    """What a config's ranges and corrections make of a float flatbuffer, as `corrections.Corrected` has it."""

    @property
    def float_model(self) -> bytes: ...

    @property
    def ranges(self) -> TensorRanges | None: ...


PreparedModel = TypeVar("PreparedModel", bound=Prepared)


class PreparingMaker(Generic[PreparedModel]):
    """Quantizes by configs that differ in how ranges are taken and constants corrected, too.

    That is done once for all configs that differ in rules alone: those of a search's last steps get the constants and ranges that were
    made for the config which they start from.
    """

    def __init__(self, prepare: Callable[[QuantizationConfig], PreparedModel], examples: Examples = dict) -> None:
        """Takes what prepares a model.

        Args:
            prepare: a config to the float flatbuffer as its corrections leave it, and the ranges by its method; it may take seconds.
            examples: as `Maker` takes them.
        """
        self._prepare, self._examples = prepare, examples
        self._made: dict[str, tuple[PreparedModel, Maker]] = {}

    def __call__(self, config: QuantizationConfig) -> bytes:
        """The flatbuffer by a config; errors as of `Maker` and `prepare`."""
        return self._of(config)[1](config)

    def prepared(self, config: QuantizationConfig) -> PreparedModel:
        """What the flatbuffer by a config was made from: to be kept with the plan, since another call of `prepare` may give another."""
        return self._of(config)[0]

    def _of(self, config: QuantizationConfig) -> tuple[PreparedModel, "Maker"]:
        # Rules count where they decide whether there are ranges at all.
        key = f"{config.needs_ranges} {config.model_copy(update={'rules': ()}).to_json()}"
        if key not in self._made:
            model = self._prepare(config)
            self._made[key] = model, Maker(model.float_model, model.ranges, self._examples)
        return self._made[key]


class Maker:
    """Quantizes one float flatbuffer by any config, with the same ranges: it doesn't look at the config's ranges and corrections."""

    def __init__(self, float_model: bytes, ranges: TensorRanges | None = None, examples: Examples = dict) -> None:
        """Takes a model.

        Args:
            float_model: a float flatbuffer.
            ranges: of its activations; configs with a calibrated scheme need them.
            examples: on which backend `auto` compares, `[n, ...]` by feature name; none for random ones.
        """
        self._float_model, self._ranges, self._examples = float_model, ranges, examples

    def __call__(self, config: QuantizationConfig) -> bytes:
        """The bytes that `apply_plan` gives with the plan that `make_plan` gives.

        Raises:
            EdgeError: see `apply_plan`.
        """
        blocks = any(block_size(each) for each in (config.granularity, *(rule.granularity for rule in config.rules)))
        if config.backend != "litert" or config.integer_only or blocks:
            examples = self._examples() or None if config.backend == "auto" else None
            return apply_plan(self._float_model, make_plan(self._float_model, config, self._ranges, None, examples), self._ranges)
        check_weights(self._float_model, config.scheme, config.rules)
        steps = recipe(config, self._sharing)
        if not steps:
            return self._float_model
        found = self._statistics if config.needs_ranges else None
        with one_line_errors():
            self._quantizer.load_quantization_recipe(list(steps))
            result = self._quantizer.quantize(found, enable_progress_bar=False, enable_progress_report=False)
        return completed(bytes(result.quantized_model), self._outputs, config)

    @cached_property
    def _outputs(self) -> tuple[Outputs, ...]:
        return outputs(self._float_model)

    @cached_property
    def _sharing(self) -> list[tuple[str, str]]:
        return sharing_operators(self._float_model)

    @cached_property
    def _statistics(self) -> dict[str, Any]:
        return statistics(self._float_model, self._ranges)

    @cached_property
    def _quantizer(self) -> Any:
        from litert_quantizer import quantizer  # half a second, and not part of the light base

        return quantizer.Quantizer(with_unique_names(self._float_model))
