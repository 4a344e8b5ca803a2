"""What a wrist does: windows of an accelerometer's signal through Conv1D.

data.py       makes signals
user_code.py  what a team writes itself: preprocessing_fn and run_fn
pipeline.py   the pipeline, standard TFX but for one call of `edge_stage`
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "create_pipeline":  # on demand: user_code is imported where the components need not be
        from tfx_edge.pipelines.sensor.pipeline import create_pipeline

        return create_pipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
