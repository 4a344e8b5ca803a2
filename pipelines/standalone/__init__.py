"""The suite's work on files, without a pipeline: the components' own executors on artifacts that are made for one call.

artifacts.py  files as TFX's artifacts
schema.py     a schema, told from the records themselves
judging.py    a flatbuffer against its float baseline: EdgeValidator
making.py     a bundle out of a SavedModel: CalibrationGen, Quantizer, TFLiteExporter
"""
