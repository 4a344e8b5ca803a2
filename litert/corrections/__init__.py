"""Corrections: other constants for a float flatbuffer, so that plain rounding of them loses less.

equalization.py     channels of two layers get ranges alike
adaround.py         learned rounding, rounding.py its optimization
bias_correction.py  the mean of each layer's output stays
correct.py          all of them in their order, and their result without any data
operators.py, chains.py, products.py, tensors.py, quantized.py: what they stand on

Each takes a float flatbuffer and gives one with the same operators and other constants; the quantizer then makes the corrected
integers of it as it does of any.
"""

from tfx_edge.litert.corrections.correct import Corrected, apply_constants, correct

__all__ = ["Corrected", "apply_constants", "correct"]
