"""Any model file in, Model artifact in the suite's form out; the work is `tfx_edge.optimize.float_model.load_float_model`."""

import tempfile
from pathlib import Path
from typing import Any

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils, path_utils

from tfx_edge.components import keys
from tfx_edge.components.observed import observed
from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.schemas import EdgeError

PATH = "path"


class Executor(BaseExecutor):
    """Executes ModelImporter."""

    @observed
    def Do(self, input_dict: dict[str, list[Artifact]], output_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> None:
        """Loads the file at `path` and writes the Keras 2 model in it.

        Args:
            input_dict: empty.
            output_dict: `model` gets `Format-Serving/`.
            exec_properties: `path`; `model_fn` or None.

        Raises:
            EdgeError: the file can't be loaded, or holds no Keras model that Keras 2 knows; nothing is written then.
        """
        path = exec_properties[PATH]
        model = load_float_model(path, model_fn=exec_properties.get(keys.MODEL_FN)).keras_model
        if model is None:
            raise EdgeError(
                f"the model at {path} was saved without a Keras model; give ModelImporter model_fn='package.module.function', which "
                "rebuilds it, or start the pipeline with TFX's Importer, which brings it to quantizing and exporting as it is"
            )
        output = artifact_utils.get_single_instance(output_dict[keys.MODEL])
        with tempfile.TemporaryDirectory() as folder:  # Keras writes a SavedModel file by file
            model.save(str(Path(folder, "model")), save_format="tf")
            io_utils.copy_dir(str(Path(folder, "model")), path_utils.serving_model_dir(output.uri))
        output.set_string_custom_property("imported_from", path)
