"""The float model of a Model artifact, or one for each of its signatures."""

from collections.abc import Sequence

from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from tfx_edge.litert.runner import SIGNATURE
from tfx_edge.optimize.float_model import FloatModel, load_float_model
from tfx_edge.schemas import EdgeError


def load(model: Sequence[Artifact], transform_graph: Sequence[Artifact] | None = None, model_fn: str | None = None) -> FloatModel:
    """Loads the one artifact of an input channel.

    Args:
        model: a Model artifact as a Trainer or a Keras-side component writes it.
        transform_graph: of the pipeline, for models that must be cut behind Transform; none where there is no Transform.
        model_fn: import path of a function that builds the Keras model, where one is needed and none was saved.

    Raises:
        EdgeError: no way of loading fits.
    """
    return load_float_model(*_places(model, transform_graph), model_fn)


def load_signatures(
    model: Sequence[Artifact],
    transform_graph: Sequence[Artifact] | None = None,
    signatures: Sequence[str] = (),
    model_fn: str | None = None,
) -> dict[str, FloatModel]:
    """Loads the signatures of the one artifact of an input channel, each as a float model.

    Args:
        model: see `load`.
        transform_graph: see `load`.
        signatures: by name; none stand for the model itself, as `serving_default`.
        model_fn: see `load`.

    Raises:
        EdgeError: as `load`, there is no signature of a name, or signatures with a `model_fn`.
    """
    if not signatures:
        return {SIGNATURE: load(model, transform_graph, model_fn)}
    if model_fn is not None:
        raise EdgeError(f"model_fn {model_fn} with signatures {', '.join(signatures)}, which it doesn't build; leave one of them out")
    path, graph = _places(model, transform_graph)
    return {name: load_float_model(path, graph, signature=name) for name in signatures}


def _places(model: Sequence[Artifact], transform_graph: Sequence[Artifact] | None) -> tuple[str, str | None]:
    path = path_utils.serving_model_path(artifact_utils.get_single_uri(list(model)))
    graph = artifact_utils.get_single_uri(list(transform_graph)) if transform_graph else None
    return path, graph
