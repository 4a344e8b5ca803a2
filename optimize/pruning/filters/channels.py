"""Which filter each slice of each weight belongs to, found by following channels through the model's graph.

A filter of a convolution or a unit of a Dense layer makes a channel: an id. Ids travel with the last axis of the tensors; where
two channels are added, their filters can only go together, and the ids are made one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from numpy.typing import NDArray
from tf_keras import layers

from tfx_edge.optimize.layer_calls import LayerCall, layer_calls

Ids = NDArray[np.int64]
Slices = list[dict[int, Ids]]  # a weight each, in the layer's order: axis to the id of each position on it

_CONVOLUTIONS = {layers.Conv1D, layers.Conv2D, layers.Conv3D}
_TRANSPOSED = {layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose}
_SEPARABLE = {layers.SeparableConv1D, layers.SeparableConv2D}
_DEPTHWISE = {layers.DepthwiseConv1D, layers.DepthwiseConv2D}
MAKERS = _CONVOLUTIONS | _TRANSPOSED | _SEPARABLE | {layers.Dense}
_MERGES = {layers.Add, layers.Subtract, layers.Average, layers.Maximum, layers.Minimum, layers.Multiply}
_ACTIVATIONS = {layers.ReLU, layers.LeakyReLU, layers.ELU, layers.ThresholdedReLU, layers.Softmax}
_PASSING = {
    *(layers.Dropout, layers.SpatialDropout1D, layers.SpatialDropout2D, layers.SpatialDropout3D),
    *(layers.GaussianNoise, layers.GaussianDropout, layers.ActivityRegularization),
    *(layers.MaxPooling1D, layers.MaxPooling2D, layers.MaxPooling3D),
    *(layers.AveragePooling1D, layers.AveragePooling2D, layers.AveragePooling3D),
    *(layers.GlobalMaxPooling1D, layers.GlobalMaxPooling2D, layers.GlobalMaxPooling3D),
    *(layers.GlobalAveragePooling1D, layers.GlobalAveragePooling2D, layers.GlobalAveragePooling3D),
    *(layers.ZeroPadding1D, layers.ZeroPadding2D, layers.ZeroPadding3D),
    *(layers.Cropping1D, layers.Cropping2D, layers.Cropping3D),
    *(layers.UpSampling1D, layers.UpSampling2D, layers.UpSampling3D),
}


@dataclass(frozen=True)
class Channels:
    """What following the channels found.

    Attributes:
        filters: layer that makes channels to the id of each of its filters, ids that are one made equal.
        slices: layer to the ids along its weights' axes; layers whose weights belong to no channel are left out.
        fixed: id to why no filter of it can go.
    """

    filters: dict[str, Ids]
    slices: dict[str, Slices]
    fixed: dict[int, str]


def follow_channels(model: tf_keras.Model) -> Channels:
    """Follows every channel from the filter that makes it to the weights that read it.

    Args:
        model: functional or Sequential, built; channels are on the last axis.
    """
    walk = _Walk()
    for call in layer_calls(model):
        inputs = [walk.tensors[key] for key in call.inputs]
        made = walk.call(call, inputs)
        for key, ids in zip(call.outputs, made, strict=True):
            walk.tensors[key] = ids
    for tensor in model.outputs:
        walk.fix(walk.tensors[id(tensor)], "its output is the model's")
    return Channels(
        filters={name: walk.one(ids) for name, ids in walk.filters.items()},
        slices={name: [{axis: walk.one(ids) for axis, ids in w.items()} for w in slices] for name, slices in walk.slices.items()},
        fixed={int(walk.one(np.array([key]))[0]): reason for key, reason in reversed(walk.reasons.items())},  # the first reason counts
    )


class _Walk:
    """Ids on their way."""

    def __init__(self) -> None:
        self.tensors: dict[int, Ids] = {}
        self.filters: dict[str, Ids] = {}
        self.slices: dict[str, Slices] = {}
        self.reasons: dict[int, str] = {}
        self._parent: list[int] = []

    def new(self, count: int) -> Ids:
        first = len(self._parent)
        self._parent.extend(range(first, first + count))
        return np.arange(first, first + count, dtype=np.int64)

    def one(self, ids: Ids) -> Ids:
        """The least id of those that were made one with each."""

        def root(key: int) -> int:
            while self._parent[key] != key:
                key = self._parent[key] = self._parent[self._parent[key]]
            return key

        return np.array([root(int(key)) for key in ids], dtype=np.int64)

    def join(self, first: Ids, second: Ids) -> None:
        for a, b in zip(self.one(first), self.one(second), strict=True):
            low, high = sorted((int(self.one(np.array([a]))[0]), int(self.one(np.array([b]))[0])))
            self._parent[high] = low

    def fix(self, ids: Ids, reason: str) -> None:
        for key in ids:
            self.reasons.setdefault(int(key), reason)

    def call(self, call: LayerCall, inputs: Sequence[Ids]) -> list[Ids]:
        """The ids of what a call of a layer gives."""
        layer, kind = call.layer, type(call.layer)
        if not call.inputs:
            made = [self.new(shape[-1] or 0 if shape else 0) for shape in call.output_shapes]
            for ids in made:
                self.fix(ids, "it goes together with the model's input")
            return made
        if getattr(layer, "data_format", None) != "channels_first":
            if kind in MAKERS and getattr(layer, "groups", 1) == 1:
                return [self._maker(layer, inputs[0])]
            if kind in _DEPTHWISE:
                return [self._depthwise(layer, inputs[0])]
            if kind is layers.BatchNormalization and list(layer.axis) == [len(call.input_shapes[0]) - 1]:
                self._read(layer, [(weight, {0: inputs[0]}) for weight in layer.weights])
                return [inputs[0]]
            if kind is layers.PReLU and layer.alpha.shape[-1] == len(inputs[0]):
                self._read(layer, [(layer.alpha, {-1: inputs[0]})])
                return [inputs[0]]
            if kind in _PASSING:
                return [inputs[0]]
            if kind is layers.Flatten and call.output_shapes[0][-1] is not None:
                return [np.tile(inputs[0], call.output_shapes[0][-1] // max(1, len(inputs[0])))]
        if kind is layers.Activation or kind in _ACTIVATIONS:
            self._check_activation(layer, layer.activation if kind is layers.Activation else layer.call, inputs[0])
            return [inputs[0]]
        if kind in _MERGES and len({len(ids) for ids in inputs}) == 1:
            return [self._joined(inputs)]
        if kind is layers.Concatenate:
            if layer.axis in (-1, len(call.input_shapes[0]) - 1):
                return [np.concatenate(inputs)]
            return [self._joined(inputs)]
        return self._unknown(call, inputs)

    def _maker(self, layer: Any, ids: Ids) -> Ids:
        kind, name = type(layer), layer.name
        if name not in self.filters:
            self.filters[name] = self.new(layer.units if kind is layers.Dense else layer.filters)
            self._check_activation(layer, layer.activation, self.filters[name])
        made = self.filters[name]
        if kind in _SEPARABLE:
            kernels = [(layer.depthwise_kernel, {-2: ids}), (layer.pointwise_kernel, {-2: _repeat(ids, layer), -1: made})]
        else:
            kernels = [(layer.kernel, {-1: ids, -2: made} if kind in _TRANSPOSED else {-2: ids, -1: made})]
        self._read(layer, [*kernels, *_bias(layer, made)])
        return made

    def _depthwise(self, layer: Any, ids: Ids) -> Ids:
        made = _repeat(ids, layer)
        self._read(layer, [(layer.depthwise_kernel, {-2: ids}), *_bias(layer, made)])
        self._check_activation(layer, layer.activation, made)
        return made

    def _joined(self, inputs: Sequence[Ids]) -> Ids:
        for other in inputs[1:]:
            self.join(inputs[0], other)
        return inputs[0]

    def _read(self, layer: Any, weights: list[tuple[Any, dict[int, Ids]]]) -> None:
        """Notes the ids along a layer's weights; at a second call of the layer the channels that meet in one weight are made one."""
        axes = {id(weight): ids for weight, ids in weights}
        slices = [axes[id(weight)] for weight in layer.weights]
        for known, new in zip(self.slices.setdefault(layer.name, slices), slices, strict=True):
            for axis, ids in new.items():
                self.join(known[axis], ids)

    def _check_activation(self, layer: Any, function: Callable[[Any], Any], ids: Ids) -> None:
        if not _keeps_zero(function):
            name = getattr(function, "__name__", "") if hasattr(layer, "activation") else type(layer).__name__
            self.fix(ids, f"activation {name!r} in layer {layer.name!r} makes something else of 0, or mixes channels")

    def _unknown(self, call: LayerCall, inputs: Sequence[Ids]) -> list[Ids]:
        kind, name = type(call.layer).__name__, call.layer.name
        for ids in inputs:
            self.fix(ids, f"layer {name!r} ({kind}) reads it, through which channels can't be followed")
        made = [self.new(shape[-1] or 0 if shape else 0) for shape in call.output_shapes]
        for ids in made:
            self.fix(ids, f"it goes together with the output of layer {name!r} ({kind}), through which channels can't be followed")
        return made


def _repeat(ids: Ids, layer: Any) -> Ids:
    return np.repeat(ids, layer.depth_multiplier)


def _bias(layer: Any, ids: Ids) -> list[tuple[Any, dict[int, Ids]]]:
    return [(layer.bias, {0: ids})] if layer.use_bias else []


def _keeps_zero(function: Callable[[Any], Any]) -> bool:
    """Whether a function works on each element alone and gives 0 for 0, tried on three numbers."""
    values = tf.constant([[0.0, 1.0, -2.0]])
    try:
        together = function(values).numpy()
        alone = np.concatenate([function(values[:, i : i + 1]).numpy() for i in range(3)], axis=1)
    except Exception:  # noqa: BLE001 - a user's function raises anything; then nothing is known of it
        return False
    return bool(together[0, 0] == 0 and np.allclose(together, alone))
