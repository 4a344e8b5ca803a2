"""Cross-layer equalization: the function stays, the channels of two layers get ranges alike.

What one layer gives in channel i, divided by s_i, and the next layer's weights of that channel, multiplied by s_i, cancel out
where all that lies between them commutes with a positive factor. With r1_i and r2_i the largest weight of channel i in the first
and the second layer, s_i = sqrt(r1_i * r2_i) / r2_i makes both sqrt(r1_i * r2_i): Nagel et al. 2019, "Data-Free Quantization
Through Weight Equalization and Bias Correction", section 4.1, https://arxiv.org/abs/1906.04721.

Other than there, r1_i is the largest of the channel's weights and its bias. A channel of next to no weights that gives its bias would
otherwise be enlarged until it alone sets the range of the activations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.constants import read_constants, replace_constants
from tfx_edge.litert.corrections.chains import following
from tfx_edge.litert.corrections.operators import OUTPUT_AXIS, Operator, own_biases, weighted_operators
from tfx_edge.litert.weights import sharing_operators
from tfx_edge.schemas.corrections import CorrectedLayer, CrossLayerEqualization

_STILL = 1e-3  # a pass that scales nothing by more than this has converged

Values = dict[int, NDArray[np.float64]]


@dataclass(frozen=True)
class _Pair:
    first: Operator
    second: Operator
    channels: int

    def ranges(self, values: Mapping[int, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The largest weight of each channel in both layers; its bias counts with the first."""
        first, second = np.abs(values[self.first.weights]), np.abs(values[self.second.weights])
        axis = OUTPUT_AXIS[self.first.kind]
        given = first.max(axis=tuple(i for i in range(first.ndim) if i != axis))
        if self.first.bias is not None:
            given = np.maximum(given, np.abs(values[self.first.bias]))
        taken = second.reshape(-1, second.shape[-1]).max(axis=0)
        if self.second.kind == "DEPTHWISE_CONV_2D":
            return given, taken.reshape(self.channels, -1).max(axis=1)
        return given, taken.reshape(-1, self.channels).max(axis=0)

    def scale(self, values: Values, factors: NDArray[np.float64]) -> None:
        """Divides the first layer by a factor a channel and multiplies the second."""
        values[self.first.weights] /= self.first.per_channel(factors)
        if self.first.bias is not None:
            values[self.first.bias] /= factors
        inputs = values[self.second.weights].shape[-1] // self.channels
        # Channels come around again in what RESHAPE flattened; each has several outputs in a depthwise layer.
        values[self.second.weights] *= (np.repeat if self.second.kind == "DEPTHWISE_CONV_2D" else np.tile)(factors, inputs)

    def fill(self, values: Mapping[int, NDArray[Any]]) -> float:
        """How well the channels fill the integers of their layers: what the paper maximizes, as a mean."""
        first, second = self.ranges(values)
        return float(np.mean(first / (first.max() or 1) * second / (second.max() or 1)))


def equalize(float_model: bytes, config: CrossLayerEqualization) -> tuple[bytes, tuple[CorrectedLayer, ...]]:
    """Equalizes every two layers between which nothing stands that a positive factor can't pass.

    Args:
        float_model: a float flatbuffer.
        config: when to stop.

    Returns:
        The flatbuffer with other weights and biases (`own_biases` of the model where nothing could be done), and what was done to
        each weighted operator, or why nothing.
    """
    model = own_biases(float_model)
    parsed = inspect.parse(model)
    found, left = weighted_operators(parsed)
    clustered = set(sharing_operators(model))
    pairs, report = [], [CorrectedLayer(kind=config.kind, op=op, tensor=name, skipped=why) for (op, name), why in left.items()]
    for op in found:
        pair = _pair(parsed, op, found, clustered)
        if isinstance(pair, str):
            report.append(CorrectedLayer(kind=config.kind, op=op.kind, tensor=op.name, skipped=pair))
        else:
            pairs.append(pair)
    originals = read_constants(parsed)
    touched = {i for p in pairs for i in (p.first.weights, p.first.bias, p.second.weights) if i is not None}
    values = {index: originals[index].astype(np.float64) for index in sorted(touched)}
    for _ in range(config.iterations):
        if max((_equalize(pair, values) for pair in pairs), default=0.0) < _STILL:
            break
    for pair in pairs:
        before, after = pair.fill(originals), pair.fill(values)
        report.append(CorrectedLayer(kind=config.kind, op=pair.first.kind, tensor=pair.first.name, before=before, after=after))
    return replace_constants(model, {index: value.astype(np.float32) for index, value in values.items()}), tuple(report)


def _equalize(pair: _Pair, values: Values) -> float:
    """One step; gives the largest logarithm of a factor."""
    first, second = pair.ranges(values)
    alive = (first > 0) & (second > 0)  # a channel that is never written, or never read, has no range to share
    factors = np.sqrt(np.divide(first, second, out=np.ones_like(first), where=alive))
    pair.scale(values, factors)
    return float(np.abs(np.log(factors)).max())


def _pair(parsed: Any, op: Operator, found: list[Operator], clustered: set[tuple[str, str]]) -> _Pair | str:
    """The operator and the one behind it, or why the two can't share a scale."""
    if not op.homogeneous:
        return "its fused activation isn't positively homogeneous, as RELU6 isn't: scaling its input doesn't scale its output"
    constants = read_constants(parsed)
    channels = constants[op.weights].shape[OUTPUT_AXIS[op.kind]] if op.weights in constants else 0
    if not channels or constants[op.weights].dtype != np.float32:
        return "its weights aren't float32"
    if op.bias is None:  # `own_biases` gave one to every other
        return "its bias is computed"
    tensor = following(parsed, op.output, channels)
    if isinstance(tensor, str):
        return tensor
    behind = next((other for other in found if other.input == tensor), None)
    if behind is None:
        return "what reads its output isn't a layer with constant weights"
    for layer in (op, behind):
        if layer.shared:
            return f"the weights of {layer.name!r} are read more than once"
        if (layer.kind, layer.name) in clustered:
            return f"the weights of {layer.name!r} share values (clustering), which scaling would part"
    weights, width = constants[behind.weights], int(parsed.subgraphs[0].tensors[tensor].shape[-1])
    depthwise = behind.kind == "DEPTHWISE_CONV_2D"
    if weights.dtype != np.float32 or weights.shape[-1] % channels or op.weights == behind.weights or (depthwise and width != channels):
        return f"{behind.name!r} doesn't read its channels one by one"
    if behind.kind == "CONV_2D" and weights.shape[-1] != width:
        return f"{behind.name!r} is a grouped convolution"
    return _Pair(op, behind, channels)
