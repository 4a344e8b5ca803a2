"""Quantizer: how a float model becomes integers, as a plan.

component.py   inputs, outputs, config
executor.py    model and calibration data in, plan out
training.py    the same by quantization-aware training, from examples
ranges.py      activation ranges over the calibration data, by Beam
"""
