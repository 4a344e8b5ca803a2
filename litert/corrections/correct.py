"""The corrections of a config, one after the other, and their result without any data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert.constants import changed_constants, replace_constants
from tfx_edge.litert.corrections.adaround import ada_round
from tfx_edge.litert.corrections.bias_correction import correct_bias
from tfx_edge.litert.corrections.equalization import equalize
from tfx_edge.litert.corrections.operators import own_biases
from tfx_edge.schemas import QuantizationConfig, TensorRanges
from tfx_edge.schemas.corrections import AdaRound, BiasCorrection, CorrectedLayer, CrossLayerEqualization


@dataclass(frozen=True)
class Corrected:
    """A corrected model.

    Attributes:
        float_model: what to quantize, with `ranges`.
        ranges: of its activations as they should be: collected behind equalization, before the other corrections.
        constants: what `apply_constants` makes it of the original from, by index of the tensor.
        report: what was done to each layer, or why nothing.
    """

    float_model: bytes
    ranges: TensorRanges
    constants: dict[int, NDArray[Any]]
    report: tuple[CorrectedLayer, ...]


def correct(
    float_model: bytes,
    config: QuantizationConfig,
    collect: Callable[[bytes], TensorRanges],
    examples: Mapping[str, NDArray[Any]],
    quantize: Callable[[bytes, TensorRanges], bytes],
) -> Corrected:
    """Carries out `config.corrections`.

    Args:
        float_model: a float flatbuffer.
        config: how it will be quantized.
        collect: the ranges of a float flatbuffer's activations, over the calibration data; called once.
        examples: some of that data, `[n, ...]` by feature name; equalization alone reads none.
        quantize: a float flatbuffer with ranges to a quantized one, as the config says.

    Raises:
        EdgeError: there are no examples, they don't fit the model, or it can't be quantized.
    """
    start = model = own_biases(float_model) if config.corrections else float_model
    report: tuple[CorrectedLayer, ...] = ()
    for step in config.corrections:
        if isinstance(step, CrossLayerEqualization):
            model, layers = equalize(model, step)
            report += layers
    ranges, reference = collect(model), model
    for step in config.corrections:
        if isinstance(step, AdaRound):
            model, layers = ada_round(model, lambda m: quantize(m, ranges), examples, step)
            report += layers
        elif isinstance(step, BiasCorrection):
            model, layers = correct_bias(model, lambda m: quantize(m, ranges), examples, step, reference)
            report += layers
    constants = changed_constants(start, model)
    return Corrected(apply_constants(float_model, constants), ranges, constants, report)


def apply_constants(float_model: bytes, constants: Mapping[int, NDArray[Any]]) -> bytes:
    """The corrected float flatbuffer from the original and `Corrected.constants`, with the same bytes as `correct` gave.

    Raises:
        EdgeError: the constants are of another model.
    """
    return replace_constants(own_biases(float_model), constants) if constants else float_model
