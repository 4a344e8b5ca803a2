"""One step on the Keras side: a model and its training data in, the changed model and a report out."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tensorflow as tf
import tf_keras
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils, path_utils

from tfx_edge.components import examples, float_models, keys
from tfx_edge.components.documents import write_document
from tfx_edge.components.training_data import training_dataset
from tfx_edge.components.user_module import UserModule, load_user_module
from tfx_edge.optimize.model_copy import compile_arguments
from tfx_edge.schemas import Config, EdgeError

Artifacts = dict[str, list[Artifact]]
Report = TypeVar("Report", bound=Config)


@dataclass(frozen=True)
class StepInput:
    """What a technique works on.

    Attributes:
        model: functional Keras 2, its inputs named as the features.
        dataset: a split's name and the label's key to one pass over `(features by name, label)`, one example at a time.
        module: the user's functions.
    """

    model: tf_keras.Model
    dataset: Callable[[str, str], tf.data.Dataset]
    module: UserModule


def run_step(
    input_dict: Artifacts,
    output_dict: Artifacts,
    exec_properties: dict[str, Any],
    technique: Callable[[StepInput], tuple[tf_keras.Model, Report]],
    report_name: str,
) -> tuple[Artifact, Report]:
    """Loads, calls the technique, and writes the artifact whole or not at all.

    Args:
        input_dict: `float_model`, `examples`, and `transform_graph` or `schema`.
        output_dict: `model` gets `Format-Serving/` and the report.
        exec_properties: `model_fn` and `module_path`, or None.
        technique: gives the changed model and its report.
        report_name: file name of the report in the artifact.

    Returns:
        The output artifact, for custom properties, and the report.

    Raises:
        EdgeError: the input doesn't allow it; nothing is left in the output then.
    """
    model, report = technique(read_step(input_dict, exec_properties))
    output = artifact_utils.get_single_instance(output_dict[keys.MODEL])
    write_model(output.uri, model, report, report_name)
    return output, report


def read_step(input_dict: Artifacts, exec_properties: dict[str, Any]) -> StepInput:
    """The model of `float_model` and the data of `examples`; see `run_step`."""
    schema = examples.transformed_schema(input_dict.get(keys.TRANSFORM_GRAPH, []), input_dict.get(keys.SCHEMA, []))
    module = load_user_module(exec_properties.get(keys.MODULE_PATH))
    model = _keras_model(input_dict, exec_properties.get(keys.MODEL_FN))
    if module.loss_fn is not None:
        model.compile(**{**compile_arguments(model), "loss": module.loss_fn()})

    def dataset(split: str, label_key: str) -> tf.data.Dataset:
        read = training_dataset(input_dict[keys.EXAMPLES], split, schema, model.input_names, label_key)
        return module.dataset_fn(read) if module.dataset_fn is not None else read

    return StepInput(model, dataset, module)


def _keras_model(input_dict: Artifacts, model_fn: str | None) -> tf_keras.Model:
    """The input model's Keras model, without which its layers can't be changed."""
    artifacts = input_dict[keys.FLOAT_MODEL]
    keras_model = float_models.load(artifacts, input_dict.get(keys.TRANSFORM_GRAPH), model_fn).keras_model
    if keras_model is None:
        raise EdgeError(
            f"the model at {artifact_utils.get_single_uri(artifacts)} was saved without a Keras 2 model, whose layers are needed here; "
            "save it with tfx_edge.pipelines.save_model(model, fn_args) in the Trainer, or give the component "
            "model_fn='package.module.function', which rebuilds it"
        )
    return keras_model


def write_model(uri: str, model: tf_keras.Model, report: Config, report_name: str) -> None:
    """Writes a Model artifact with a report whole or not at all."""
    serving = path_utils.serving_model_dir(uri)
    with tempfile.TemporaryDirectory() as folder:  # Keras writes a SavedModel file by file
        model.save(str(Path(folder, "model")), save_format="tf")
        try:
            io_utils.copy_dir(str(Path(folder, "model")), serving)
            write_document(f"{uri}/{report_name}", report)  # last: where it is, all is
        except BaseException:
            if fileio.exists(serving):
                fileio.rmtree(serving)
            raise
