"""A model that was trained elsewhere: a file in place of a Trainer, on the sensor's windows.

pipeline.py   the pipeline: a ModelImporter, and several ways to an edge model of which the best blessed one is pushed
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "create_pipeline":  # on demand, as in the other examples
        from tfx_edge.pipelines.imported.pipeline import create_pipeline

        return create_pipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
