"""Which taxi rides get a large tip: a wide and deep model on numbers, categories and missing values, as in TFX's taxi example.

data.py       makes rides
user_code.py  what a team writes itself: preprocessing_fn and run_fn
pipeline.py   the pipeline, standard TFX but for one call of `edge_stage`
"""

from tfx_edge.pipelines.on_demand import on_demand

__getattr__ = on_demand(__name__, {"create_pipeline": "pipeline"})
