"""The ModelBlessing, with the properties and files that TFX's Evaluator writes and Pusher reads."""

from tfx.types.artifact import Artifact

from tfx_edge.components.documents import write_bytes


def write_blessing(blessing: Artifact, blessed: bool, model: Artifact, baseline: Artifact | None, component_id: str | None) -> None:
    """Writes the file BLESSED or NOT_BLESSED, and the artifact's properties.

    Args:
        blessing: the output artifact.
        blessed: the verdict.
        model: the candidate.
        baseline: the float model, where there is one.
        component_id: id of the component that decided, where TFX says it.
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
