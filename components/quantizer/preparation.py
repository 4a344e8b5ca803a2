"""Edge preparation of the model that is quantized, so that what the exporter gets needs no rewriting."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from tfx.utils import path_utils

from tfx_edge.components.keras_step import PREPARATION, write_model
from tfx_edge.optimize.float_model import FloatModel, load_float_model
from tfx_edge.optimize.preparation import prepare


def prepare_model(float_model: FloatModel, uri: str, examples: Mapping[str, NDArray[Any]] | None, scratch: str) -> tuple[FloatModel, str]:
    """Rewrites what blocks a device, where there is a Keras model and anything to rewrite.

    Args:
        float_model: as loaded.
        uri: of its Model artifact.
        examples: `[n, ...]` by feature name, to compare outputs on; None makes some up.
        scratch: an empty folder.

    Returns:
        The model as the exporter will load it, and the folder that holds it as an artifact does: `uri` where nothing was rewritten,
        else `scratch`, with `preparation.json`.

    Raises:
        EdgeError: a layer can't be brought to a device.
    """
    if float_model.keras_model is None:
        return float_model, uri
    prepared, report = prepare(float_model.keras_model, examples)
    if not report.rewrites:
        return float_model, uri
    write_model(scratch, prepared, {PREPARATION: report})
    return load_float_model(path_utils.serving_model_path(scratch)), scratch
