"""Which layer becomes which."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tf_keras

from tfx_edge.optimize.graph.preprocessing import Affine, Buckets, CategoryCounts, Vocabulary
from tfx_edge.optimize.preparation.recurrent import can_unroll, unrolled

Layer: TypeAlias = tf_keras.layers.Layer

_EPSILON = 1e-7  # tf_keras.backend.epsilon(), below which Normalization takes a deviation for it


@dataclass(frozen=True)
class Rule:
    """How one kind of layer is rewritten.

    Attributes:
        applies: whether it is for a layer. Subclasses of the user's own are not touched, as they may compute something else.
        make: the original layer to the chain of layers in its place; the last has its name, and takes its weights if it has any.
        became: what that is, for the report.
        reason: why the layer could not stay.
    """

    applies: Callable[[Layer], bool]
    make: Callable[[Layer], list[Layer]]
    became: str
    reason: str


def _affine(layer: Layer) -> list[Layer]:
    scale, offset = np.asarray(layer.scale, np.float32), np.asarray(layer.offset, np.float32)
    return [Affine(scale=scale.tolist(), offset=offset.tolist() if offset.any() else None, **_common(layer))]


def _normalization(layer: Layer) -> list[Layer]:
    mean = np.asarray(layer.mean, np.float32)
    deviation = np.maximum(np.sqrt(np.asarray(layer.variance, np.float32)), np.float32(_EPSILON))
    if layer.invert:
        return [Affine(scale=_values(deviation), offset=_values(mean), **_common(layer))]
    return [Affine(shift=_values(mean), scale=_values(1 / deviation), **_common(layer))]


def _values(constant: Any) -> Any:
    """Without leading dimensions of 1, which would raise the rank of the result on a device."""
    while constant.ndim and constant.shape[0] == 1:
        constant = constant[0]
    return constant.tolist()


def _category_encoding(layer: Layer) -> list[Layer]:
    return [CategoryCounts(layer.num_tokens, layer.output_mode, **_common(layer))]


def _discretization(layer: Layer) -> list[Layer]:
    boundaries = [float(b) for b in np.asarray(layer.bin_boundaries).reshape(-1)]
    return _encoded(layer, lambda name: Buckets(boundaries, name=name), len(boundaries) + 1)


def _integer_lookup(layer: Layer) -> list[Layer]:
    tokens = [int(token) for token in layer.get_vocabulary(include_special_tokens=False)]
    special = len(layer.get_vocabulary()) - len(tokens)
    # Of a mask's token output_mode "int" makes index 0; the other modes drop it.
    mask = None if layer.mask_token is None else (int(layer.mask_token), 0 if layer.output_mode == "int" else -1)
    count = layer.max_tokens if layer.pad_to_max_tokens else len(tokens) + special
    return _encoded(layer, lambda name: Vocabulary(tokens, first=special, unknown=special - 1, mask=mask, name=name), count)


def _encoded(layer: Layer, indices: Callable[[str], Layer], count: int) -> list[Layer]:
    """The indices themselves, or one of the encodings of them."""
    if layer.output_mode == "int":
        return [indices(layer.name)]
    return [indices(f"{layer.name}_index"), CategoryCounts(count, layer.output_mode, **_common(layer))]


def _common(layer: Layer) -> dict[str, Any]:
    return {"name": layer.name, "dtype": layer.compute_dtype}


def _is(kind: type[Layer]) -> Callable[[Layer], bool]:
    return lambda layer: type(layer) is kind


_TRAINING = "training tools can't copy or wrap it, and its state isn't in its config"

RULES = (
    Rule(_is(tf_keras.layers.Normalization), _normalization, "Affine: subtract the mean, multiply by 1 / deviation", _TRAINING),
    Rule(_is(tf_keras.layers.Rescaling), _affine, "Affine: multiply, add", "tfmot doesn't know it"),
    Rule(_is(tf_keras.layers.CategoryEncoding), _category_encoding, "CategoryCounts: ONE_HOT and a sum", "its DenseBincount needs Flex"),
    Rule(_is(tf_keras.layers.Discretization), _discretization, "Buckets: comparisons and a sum", "its Bucketize is a custom operator"),
    Rule(_is(tf_keras.layers.IntegerLookup), _integer_lookup, "Vocabulary: comparisons and a sum", "it has a hash table with state"),
    Rule(can_unroll, lambda layer: [unrolled(layer)], "itself, unrolled", "it would become a loop (WHILE), which can't be quantized"),
)


def rule_for(layer: Layer) -> Rule | None:
    """The rule that rewrites a layer, if any."""
    return next((rule for rule in RULES if rule.applies(layer)), None)
