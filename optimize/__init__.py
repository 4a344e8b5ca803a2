"""Keras model to Keras model, and the float model that everything starts from. Usable from a notebook; needs no TFX."""

from tfx_edge.optimize.keras_tracing import trace_keras_as_it_is

trace_keras_as_it_is()
