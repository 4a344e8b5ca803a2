"""Shapes in JPEG files: decoded and resized in Transform, told apart by a MobileNet.

data.py       draws the shapes
user_code.py  what a team writes itself: preprocessing_fn and run_fn
pipeline.py   the pipeline, standard TFX but for one call of `edge_stage`
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "create_pipeline":  # on demand: user_code is imported where the components need not be
        from tfx_edge.pipelines.images.pipeline import create_pipeline

        return create_pipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
