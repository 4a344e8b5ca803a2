"""Transform's preprocessing as a float function of its own, for a device that feeds a model raw features.

device_form.py      raw features as a device gives them: dense tensors of numbers
transform_graph.py  Transform's saved graph: which raw features and operators an output needs
preprocessing.py    from the one to what a model takes, and what can't be
plausible.py        made-up raw features that come out as the model knows them
"""

from tfx_edge.optimize.raw_features.device_form import device_features, device_spec
from tfx_edge.optimize.raw_features.plausible import plausible_features
from tfx_edge.optimize.raw_features.preprocessing import blame, preprocessing
from tfx_edge.optimize.raw_features.transform_graph import TransformGraph

__all__ = ["TransformGraph", "blame", "device_features", "device_spec", "plausible_features", "preprocessing"]
