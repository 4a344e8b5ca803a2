"""A float model as the suite sees it: a function on named transformed features, whatever a Trainer saved.

model.py            the type, with prediction and saving
load.py             which of the ways below fits what lies on disk
keras_model.py      a Keras 2 SavedModel, rewrapped without its transform layer
keras_config.py      the same, made again from its config and weights, which is faster
callable_object.py  a SavedModel without Keras metadata that can be called on transformed features
signature.py        a SavedModel whose serving signature takes the features by name
signature_cut.py    a SavedModel that takes serialized tf.Examples, cut behind its transform layer
model_file.py       a .keras or .h5 file
keras3_model.py     a Keras 3 model in Keras 2
made_up_features.py random inputs that a Keras model can take
rebuild.py          a Keras model for one that was saved without Keras metadata, by the user's function
"""

from tfx_edge.optimize.float_model.keras3_model import to_keras2
from tfx_edge.optimize.float_model.load import load_float_model
from tfx_edge.optimize.float_model.model import FloatModel, save_models

__all__ = ["FloatModel", "load_float_model", "save_models", "to_keras2"]
