"""Kernels as products of thinner ones.

factors.py    the factorizations, on arrays
choice.py     which layers, and the rank of each
layers.py     the Keras layers that take a layer's place
algorithm.py  all of it, with fine-tuning after
"""

from tfx_edge.optimize.low_rank.algorithm import factorize

__all__ = ["factorize"]
