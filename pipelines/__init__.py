"""Pipeline factories and the example pipelines. `save_model` is the one line that a Trainer's run_fn needs."""

import importlib
from typing import TYPE_CHECKING, Any

from tfx_edge.pipelines.saving import save_model

if TYPE_CHECKING:
    from tfx_edge.pipelines.search import tuned_stage
    from tfx_edge.pipelines.stage import EdgeStage, edge_stage
    from tfx_edge.pipelines.variants import ParetoStage, pareto

__all__ = ["EdgeStage", "ParetoStage", "edge_stage", "pareto", "save_model", "tuned_stage"]

_ON_DEMAND = {"EdgeStage": "stage", "edge_stage": "stage", "ParetoStage": "variants", "pareto": "variants", "tuned_stage": "search"}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:  # a run_fn that saves a model needs no components
        return getattr(importlib.import_module(f"tfx_edge.pipelines.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
