"""Structured pruning: whole filters leave a model, and so do the weights of all layers that read them.

channels.py    which filter each slice of each weight belongs to
groups.py      filters that can only go together, and layers that can't lose any
ranking.py     which filters of a group matter least
removal.py     the smaller model
algorithm.py   all of it, then fine-tuning
"""

from tfx_edge.optimize.pruning.filters.algorithm import remove_filters

__all__ = ["remove_filters"]
