"""Pipeline factories and the example pipelines. `save_model` is the one line that a Trainer's run_fn needs."""

from typing import TYPE_CHECKING, Any

from tfx_edge.pipelines.saving import save_model

if TYPE_CHECKING:
    from tfx_edge.pipelines.stage import EdgeStage, edge_stage

__all__ = ["EdgeStage", "edge_stage", "save_model"]


def __getattr__(name: str) -> Any:
    if name in ("EdgeStage", "edge_stage"):  # on demand: a run_fn that saves a model needs no components
        from tfx_edge.pipelines import stage

        return getattr(stage, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
