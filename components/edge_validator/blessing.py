"""The ModelBlessing, with the properties and files that TFX's Evaluator writes and Pusher reads."""

from collections.abc import Mapping
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types.artifact import Artifact

from tfx_edge.components.documents import write_bytes


def deciding_component(exec_properties: Mapping[str, Any], context: base_executor.BaseExecutor.Context | None) -> str | None:
    """The id of the component that runs: TFX hands it over on some orchestrators as a property, on others in the context."""
    given = exec_properties.get("current_component_id")
    if given or context is None or context.pipeline_node is None:
        return given or None
    node_id: str = context.pipeline_node.node_info.id
    return node_id or None


def write_blessing(blessing: Artifact, blessed: bool, model: Artifact, baseline: Artifact | None, component_id: str | None) -> None:
    """Writes the file BLESSED or NOT_BLESSED, and the artifact's properties.

    Args:
        blessing: the output artifact.
        blessed: the verdict.
        model: the candidate.
        baseline: the float model, where there is one.
        component_id: id of the component that decided, where it is known.
    """
    blessing.set_string_custom_property("current_model", model.uri)
    blessing.set_int_custom_property("current_model_id", model.id)
    if baseline is not None:
        blessing.set_string_custom_property("baseline_model", baseline.uri)
        blessing.set_int_custom_property("baseline_model_id", baseline.id)
    if component_id is not None:
        blessing.set_string_custom_property("component_id", component_id)
    write_bytes(f"{blessing.uri}/{'BLESSED' if blessed else 'NOT_BLESSED'}", b"")
    blessing.set_int_custom_property("blessed", int(blessed))
