"""The float model of a Model artifact."""

from collections.abc import Sequence

from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from tfx_edge.optimize.float_model import FloatModel, load_float_model


def load(model: Sequence[Artifact], transform_graph: Sequence[Artifact] | None = None, model_fn: str | None = None) -> FloatModel:
    """Loads the one artifact of an input channel.

    Args:
        model: a Model artifact as a Trainer or a Keras-side component writes it.
        transform_graph: of the pipeline, for models that must be cut behind Transform; none where there is no Transform.
        model_fn: import path of a function that builds the Keras model, where one is needed and none was saved.

    Raises:
        EdgeError: no way of loading fits.
    """
    path = path_utils.serving_model_path(artifact_utils.get_single_uri(list(model)))
    graph = artifact_utils.get_single_uri(list(transform_graph)) if transform_graph else None
    return load_float_model(path, graph, model_fn)
