"""Model files that were made elsewhere: `.h5` and `.keras`, by Keras 2 or Keras 3."""

import importlib
import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.float_model.keras3_model import to_keras2
from tfx_edge.schemas import EdgeError

SUFFIXES = (".keras", ".h5", ".hdf5")


def is_model_file(path: str) -> bool:
    """Whether a path names a model file by its suffix."""
    return path.endswith(SUFFIXES)


def load_model_file(path: str) -> tf_keras.Model:
    """Loads a model file as a Keras 2 model, converting a Keras 3 one.

    Args:
        path: a `.keras` or `.h5` file, on any filesystem that TensorFlow reaches.

    Raises:
        EdgeError: there is no such file, it can't be read, or a Keras 3 layer has no twin in Keras 2; the text names the layer.
    """
    if not tf.io.gfile.exists(path) or tf.io.gfile.isdir(path):
        raise EdgeError(f"no model file at {path}; expected a .keras or .h5 file")
    with tempfile.TemporaryDirectory(prefix="tfx-edge-") as folder:  # Keras reads local files alone
        local = str(Path(folder, os.path.basename(path)))
        with tf.io.gfile.GFile(path, "rb") as source, open(local, "wb") as target:
            shutil.copyfileobj(source, target)
        version = _keras_version(local, path)
        try:
            model: Any = (_keras3() if version.startswith("3") else tf_keras).models.load_model(local)
        except Exception as error:  # a file of unknown content: Keras raises anything
            raise EdgeError(
                f"the model file {path} (Keras {version}) can't be read: {one_line(error)}; a custom layer must be registered with "
                "register_keras_serializable and imported, and a Lambda is refused: replace it with a layer"
            ) from error
    return to_keras2(model) if version.startswith("3") else model


def _keras_version(local: str, path: str) -> str:
    try:
        if local.endswith(".keras"):
            with zipfile.ZipFile(local) as archive:
                return str(json.loads(archive.read("metadata.json"))["keras_version"])
        import h5py

        with h5py.File(local) as file:
            if "model_config" not in file.attrs:
                raise EdgeError(f"the file {path} holds weights without a model; save the whole model with model.save")
            version = file.attrs.get("keras_version", "2")
            return version.decode() if isinstance(version, bytes) else str(version)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise EdgeError(f"the model file {path} can't be read: {one_line(error)}; save it again with model.save") from error


def _keras3() -> Any:
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    return importlib.import_module("keras")
