"""Magnitude pruning of a Keras model: which layers, when, and what came of it."""

from tfx_edge.optimize.pruning.algorithm import prune

__all__ = ["prune"]
