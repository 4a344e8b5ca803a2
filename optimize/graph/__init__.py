"""The graph of layer calls behind a Keras model: walk it, replace what you like, get a new model.

rebuild.py         the walk
names.py           names of layers that come out of nested models
operator.py        operators between layers (`x * 2`, `tf.concat(...)`) as a layer that every tool takes
preprocessing.py   layers of LiteRT's operators that take the place of Keras's preprocessing layers

Importing this package registers its layers with Keras, so that a saved model which holds them loads.
"""

from tfx_edge.optimize.graph import preprocessing
from tfx_edge.optimize.graph.operator import Operator
from tfx_edge.optimize.graph.rebuild import Replace, is_flat, rebuild

__all__ = ["Operator", "Replace", "is_flat", "preprocessing", "rebuild"]
