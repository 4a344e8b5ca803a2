"""Pruning a Keras model: which weights or filters go, when, and what came of it.

algorithm.py      the way in: one function for every granularity
magnitude.py      weights to zero while fine-tuning: selection.py, schedule.py, wrapper.py, smallest.py, sparsity.py are its steps
filters/          filters out of the model
sensitivity.py    what each layer minds; allocation.py: each layer's sparsity from that
"""

from tfx_edge.optimize.pruning.algorithm import prune

__all__ = ["prune"]
