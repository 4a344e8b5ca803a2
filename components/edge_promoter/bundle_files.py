"""Reads an edge model's bundle on any filesystem that TFX reaches."""

from tfx.dsl.io import fileio
from tfx.utils import path_utils

from tfx_edge.components.documents import read_bytes
from tfx_edge.components.edge_model_files import FLATBUFFER, edge_files
from tfx_edge.release.bundle import Bundle, bundle_of
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.release import GOLDEN, MANIFEST, MODEL


def read_edge_model(uri: str) -> Bundle:
    """Reads what TFLiteExporter wrote.

    Args:
        uri: of the Model artifact.

    Raises:
        EdgeError: a file is missing, or the manifest is of another flatbuffer.
    """
    files = {MODEL: f"{path_utils.serving_model_path(uri)}/{FLATBUFFER}"} | edge_files(uri)
    missing = [path for path in (MODEL, MANIFEST, GOLDEN) if path not in files or not fileio.exists(files[path])]
    if missing:
        raise EdgeError(
            f"the model at {uri} has no {' and no '.join(missing)}; give EdgePromoter an edge model, as TFLiteExporter makes it"
        )
    return bundle_of({path: read_bytes(file) for path, file in sorted(files.items())}, f"the model at {uri}")
