"""tfx-edge: TFX components that take a float Keras model to a verified `.tflite` on edge devices.

Importing this package imports nothing heavy. The artifact types are exported here, lazily, because Kubeflow Pipelines
uses a type's name (`tfx_edge.CalibrationData`) as the path it imports the class from.
"""

import importlib
import os

# tfmot and TFX's own image need Keras 2; the variable only counts if it is set before TensorFlow is imported.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

__version__ = "0.1.0"

_ARTIFACT_TYPES = ("CalibrationData", "EdgeReport", "QuantizationPlan")


def __getattr__(name: str) -> type:
    if name in _ARTIFACT_TYPES:
        artifact_type: type = getattr(importlib.import_module("tfx_edge.schemas.artifact_types"), name)
        return artifact_type
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ARTIFACT_TYPES])
