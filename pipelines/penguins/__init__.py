"""Penguins by four measurements: scalar float inputs and a small Dense network, as in TFX's penguin example.

data.py       the penguins that come with the package
user_code.py  what a team writes itself: preprocessing_fn and run_fn
pipeline.py   the pipeline, standard TFX but for one call of `edge_stage`
"""

from tfx_edge.pipelines.on_demand import on_demand

__getattr__ = on_demand(__name__, {"create_pipeline": "pipeline"})
