"""Pipeline factories and the example pipelines. `save_model` is the one line that a Trainer's run_fn needs."""

from typing import TYPE_CHECKING

from tfx_edge.pipelines.on_demand import on_demand
from tfx_edge.pipelines.saving import save_model

if TYPE_CHECKING:
    from tfx_edge.pipelines.search import tuned_stage
    from tfx_edge.pipelines.stage import EdgeStage, edge_stage
    from tfx_edge.pipelines.variants import ParetoStage, pareto

__all__ = ["EdgeStage", "ParetoStage", "edge_stage", "pareto", "save_model", "tuned_stage"]

__getattr__ = on_demand(
    __name__,
    {"EdgeStage": "stage", "edge_stage": "stage", "ParetoStage": "variants", "pareto": "variants", "tuned_stage": "search"},
)
