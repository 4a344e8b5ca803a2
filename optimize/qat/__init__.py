"""Quantization-aware training: a Keras model that emulates int8 and has learned to do with it.

selection.py    which layers are quantized, and why the others aren't
preserve.py     which kernels keep their zeros and shared values
folding.py      BatchNormalization into the Dense layer before it
splitting.py    a separable convolution as the two layers that it is
scheme.py       tfmot's 8-bit scheme, with ranges that fit a short training and shared values that stay shared
algorithm.py    annotate, train, count
"""

from tfx_edge.optimize.qat.algorithm import train_quantized

__all__ = ["train_quantized"]
