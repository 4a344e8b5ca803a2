"""What every component that reads transformed examples asks for when a pipeline is built."""

from tfx.types.channel import BaseChannel

from tfx_edge.schemas import EdgeError


def check_features_known(component: str, transform_graph: BaseChannel | None, schema: BaseChannel | None) -> None:
    """Checks that one of the two that name and type the features of the examples is wired.

    Raises:
        EdgeError: neither is.
    """
    if transform_graph is None and schema is None:
        raise EdgeError(
            f"{component}: neither transform_graph nor schema is given, so the features of the examples are unknown; "
            "pass transform.outputs['transform_graph'], or without a Transform, the schema of the examples"
        )
