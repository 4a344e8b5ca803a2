"""Where an edge model's files are."""

FLATBUFFER = "tflite"
"""In the folder of the serving model: TFMA's and TFX's name for it."""

MANIFEST = "edge/manifest.json"
"""In the folder of the Model artifact."""
