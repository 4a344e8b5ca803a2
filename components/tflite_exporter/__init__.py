"""TFLiteExporter: the flatbuffer, and what a device must know of it.

component.py   inputs, outputs, config
executor.py    float model and plan in, edge model out
"""
