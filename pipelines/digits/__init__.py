"""The example pipeline: scikit-learn's digits, from raw records to a blessed int8 model on a release channel.

data.py       writes the digits as TFRecord
user_code.py  what a team writes itself: preprocessing_fn and run_fn
pipeline.py   the pipeline, standard TFX but for one call of `edge_stage`
"""

from tfx_edge.pipelines.on_demand import on_demand

__getattr__ = on_demand(__name__, {"create_pipeline": "pipeline"})
