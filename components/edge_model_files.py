"""Where an edge model's flatbuffer is; the names of the other files are `schemas.release`'s."""

FLATBUFFER = "tflite"
"""In the folder of the serving model: TFMA's and TFX's name for it."""
