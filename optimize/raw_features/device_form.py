"""Raw features as a device gives them: a dense tensor of numbers each.

What every example has (FixedLenFeature) is as it is in the examples. What an example may lack (VarLenFeature) is one number, `[n, 1]`:
NaN, or for integers the smallest one of int64, where it is missing.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from tfx_edge.schemas import EdgeError, TensorSpec

_MISSING = {tf.float32: float("nan"), tf.int64: int(np.iinfo(np.int64).min)}


def device_spec(name: str, feature: Any, batch: int | None = None) -> TensorSpec:
    """The input that stands for a feature on a device.

    Args:
        name: of the raw feature, of numbers.
        feature: its entry in Transform's `raw_feature_spec`.
        batch: the batch that the model is fixed to; None for any.

    Raises:
        EdgeError: it has another number of values in each example.
    """
    if isinstance(feature, tf.io.FixedLenFeature):
        return TensorSpec(name=name, shape=(batch, *feature.shape), dtype=feature.dtype.name)
    if isinstance(feature, tf.io.VarLenFeature):
        return TensorSpec(name=name, shape=(batch, 1), dtype=feature.dtype.name)
    raise EdgeError(
        f"features 'raw': {name!r} is a {type(feature).__name__}, of which each example has another number of values; keep features "
        "'transformed', or give it a fixed shape in the schema"
    )


def type_spec(feature: Any) -> Any:
    """What Transform's graph takes for a feature of `raw_feature_spec`."""
    if isinstance(feature, tf.io.FixedLenFeature):
        return tf.TensorSpec([None, *feature.shape], feature.dtype)
    if isinstance(feature, tf.io.RaggedFeature):
        inner = [p.length if isinstance(p, tf.io.RaggedFeature.UniformRowLength) else None for p in feature.partitions]
        return tf.RaggedTensorSpec([None, None, *inner], feature.dtype, row_splits_dtype=feature.row_splits_dtype)
    sizes = tf.nest.flatten(feature.size) if isinstance(feature, tf.io.SparseFeature) else [None]
    return tf.SparseTensorSpec([None, *sizes], feature.dtype)


def to_transform(feature: Any, values: tf.Tensor) -> Any:
    """A device's tensor in the form that Transform's graph takes."""
    if isinstance(feature, tf.io.FixedLenFeature):
        return values
    missing = tf.math.is_nan(values) if values.dtype.is_floating else tf.equal(values, _MISSING[values.dtype])
    there = tf.where(tf.logical_not(missing))
    return tf.SparseTensor(there, tf.gather_nd(values, there), tf.shape(values, tf.int64))


def device_features(values: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """A batch of raw examples as a device would feed it, without what it can't feed: text, and more than one value where none need be.

    Args:
        values: tensors `[n, ...]` and sparse tensors by feature name, as tfx-bsl and tf.io read them.
    """
    dense = {name: _dense(value) for name, value in values.items() if value.dtype != tf.string}
    return {name: value for name, value in dense.items() if value is not None}


def _dense(values: Any) -> NDArray[Any] | None:
    if isinstance(values, tf.Tensor):
        return np.asarray(values)
    if not isinstance(values, tf.SparseTensor) or values.dtype not in _MISSING:
        return None
    indices = np.asarray(values.indices)
    if indices.shape[1] != 2 or np.any(indices[:, 1] > 0):
        return None
    filled = np.full((int(values.dense_shape[0]), 1), _MISSING[values.dtype], values.dtype.as_numpy_dtype)
    filled[indices[:, 0], 0] = np.asarray(values.values)
    return filled
