"""Clustering: kernels that hold few distinct values.

selection.py    which layers, how many values, and why the others are left
centroids.py    where the values start, and which weight takes which
algorithm.py    share, fine-tune, count
"""

from tfx_edge.optimize.clustering.algorithm import cluster

__all__ = ["cluster"]
