"""What reviews say: words to tokens in Transform, then Embedding and a bidirectional LSTM, as in TFX's imdb example.

data.py       makes reviews
user_code.py  what a team writes itself: preprocessing_fn and run_fn
pipeline.py   the pipeline, standard TFX but for one call of `edge_stage`
"""

from tfx_edge.pipelines.on_demand import on_demand

__getattr__ = on_demand(__name__, {"create_pipeline": "pipeline"})
