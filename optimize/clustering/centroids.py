"""From a trained tensor to groups of weights that share a value: tfmot's starting points, then k-means."""

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow_model_optimization.python.core.clustering.keras import clustering_centroids as tfmot_centroids
from tensorflow_model_optimization.python.core.clustering.keras.cluster_config import CentroidInitialization

from tfx_edge.optimize.weight_pattern import WeightPattern
from tfx_edge.schemas import ClusteringConfig

_STARTS = {
    "linear": CentroidInitialization.LINEAR,
    "random": CentroidInitialization.RANDOM,
    "density_based": CentroidInitialization.DENSITY_BASED,
    "kmeans_plus_plus": CentroidInitialization.KMEANS_PLUS_PLUS,
}


def share(weights: NDArray[np.float32], clusters: int, per_channel: bool, config: ClusteringConfig) -> WeightPattern:
    """Groups the elements of a tensor.

    Args:
        weights: any shape.
        clusters: groups at most, that of zeros included; in each slice of the last axis with `per_channel`.
        per_channel: see above.
        config: initialization, k-means steps, whether zeros stay.
    """
    zeros = (weights == 0) if config.preserve_sparsity else np.zeros(weights.shape, bool)
    if not per_channel:
        return WeightPattern(_groups(weights, zeros, clusters, config), zeros)
    groups = np.empty(weights.shape, np.int32)
    for channel in range(weights.shape[-1]):
        groups[..., channel] = channel * clusters + _groups(weights[..., channel], zeros[..., channel], clusters, config)
    return WeightPattern(groups, zeros)


def _groups(weights: NDArray[np.float32], zeros: NDArray[np.bool_], clusters: int, config: ClusteringConfig) -> NDArray[np.int32]:
    """Group numbers from 0; the zeros, where there are any, are the last group."""
    groups = np.full(weights.shape, clusters - 1, np.int32)
    values = weights[~zeros]
    if values.size:
        groups[~zeros] = _nearest(values, _centroids(values, clusters - bool(zeros.any()), config))
    return groups


def _centroids(values: NDArray[np.float32], number: int, config: ClusteringConfig) -> NDArray[np.float64]:
    """At most `number` sorted centroids of a vector, each the mean of the values nearest to it after enough steps."""
    distinct = np.unique(values)
    if distinct.size <= number:
        return distinct.astype(np.float64)
    start = tfmot_centroids.CentroidsInitializerFactory.get_centroid_initializer(_STARTS[config.initialization])
    centroids = np.unique(np.asarray(start(tf.constant(values), number).get_cluster_centroids(), np.float64))
    for _ in range(config.kmeans_steps):
        groups = _nearest(values, centroids)
        sizes = np.bincount(groups, minlength=centroids.size)
        means = np.bincount(groups, weights=values, minlength=centroids.size)[sizes > 0] / sizes[sizes > 0]
        if np.array_equal(means, centroids):
            break
        centroids = means
    return centroids


def _nearest(values: NDArray[np.float32], centroids: NDArray[np.float64]) -> NDArray[np.int32]:
    """The number of the nearest centroid, by the midpoints between the sorted centroids."""
    return np.searchsorted((centroids[1:] + centroids[:-1]) / 2, values).astype(np.int32)
