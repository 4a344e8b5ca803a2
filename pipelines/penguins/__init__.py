"""Penguins by four measurements: scalar float inputs and a small Dense network, as in TFX's penguin example.

data.py       the penguins that come with the package
user_code.py  what a team writes itself: preprocessing_fn and run_fn
pipeline.py   the pipeline, standard TFX but for one call of `edge_stage`
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "create_pipeline":  # on demand: user_code is imported where the components need not be
        from tfx_edge.pipelines.penguins.pipeline import create_pipeline

        return create_pipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
