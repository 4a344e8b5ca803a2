"""Distiller: a small model that learned from a large one.

component.py   inputs, outputs, config
executor.py    model and transformed examples in, student and its report out
"""
