"""The graph of layer calls behind a Keras model: walk it, replace what you like, get a new model.

rebuild.py    the walk
names.py      names of layers that come out of nested models
operator.py   operators between layers (`x * 2`, `tf.concat(...)`) as layers that every tool takes
"""

from tfx_edge.optimize.graph.operator import Operator
from tfx_edge.optimize.graph.rebuild import Replace, is_flat, rebuild

__all__ = ["Operator", "Replace", "is_flat", "rebuild"]
