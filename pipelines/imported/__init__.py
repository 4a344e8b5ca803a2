"""A model that was trained elsewhere: a file in place of a Trainer, on the sensor's windows.

pipeline.py   the pipeline: a ModelImporter, and several ways to an edge model of which the best blessed one is pushed
"""

from tfx_edge.pipelines.on_demand import on_demand

__getattr__ = on_demand(__name__, {"create_pipeline": "pipeline"})
