"""What reviews say: words to tokens in Transform, then Embedding and a bidirectional LSTM, as in TFX's imdb example.

data.py       makes reviews
user_code.py  what a team writes itself: preprocessing_fn and run_fn
pipeline.py   the pipeline, standard TFX but for one call of `edge_stage`
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "create_pipeline":  # on demand: user_code is imported where the components need not be
        from tfx_edge.pipelines.text.pipeline import create_pipeline

        return create_pipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
