"""One step on the Keras side: a model and its training data in, the changed model and a report out."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tensorflow as tf
import tf_keras
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils, path_utils

from tfx_edge.components import examples, float_models, keys
from tfx_edge.components.documents import write_document
from tfx_edge.components.training_data import training_dataset
from tfx_edge.components.user_module import UserModule, load_user_module
from tfx_edge.optimize.model_copy import compile_arguments
from tfx_edge.optimize.preparation import prepare
from tfx_edge.optimize.traced_gradients import forgetting_gradients
from tfx_edge.schemas import Config, EdgeError, FineTuningConfig, PreparationReport

Artifacts = dict[str, list[Artifact]]
PREPARATION = "preparation.json"
_COMPARED = 64  # examples

Report = TypeVar("Report", bound=Config)


@dataclass(frozen=True)
class StepInput:
    """What a technique works on.

    Attributes:
        model: functional Keras 2, its inputs named as the features, prepared for edge devices.
        preparation: what was rewritten for that.
        dataset: a split's name and the label's key to one pass over `(features by name, label)`, one example at a time.
        module: the user's functions.
    """

    model: tf_keras.Model
    preparation: PreparationReport
    dataset: Callable[[str, str], tf.data.Dataset]
    module: UserModule

    def training(self, config: FineTuningConfig) -> tf.data.Dataset:
        """The examples to train on."""
        return self.dataset(config.split, config.label_key)

    def validation(self, config: FineTuningConfig) -> tf.data.Dataset | None:
        """The examples that early stopping looks at, where it names their split."""
        stopping = config.early_stopping
        return None if stopping is None or stopping.split is None else self.dataset(stopping.split, config.label_key)

    def apply(
        self, technique: Callable[..., tuple[tf_keras.Model, Report]], config: Any, **arguments: Any
    ) -> tuple[tf_keras.Model, Report]:
        """Calls a technique on the model and its examples.

        Args:
            technique: of `tfx_edge.optimize`: `technique(model, dataset, config, *, validation, **arguments)`.
            config: the technique's, with `fine_tuning`.
            arguments: further ones of the technique.
        """
        tuning = config.fine_tuning
        return technique(self.model, self.training(tuning), config, validation=self.validation(tuning), **arguments)


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
        output_dict: `model` gets `Format-Serving/`, `preparation.json` and the report.
        exec_properties: `model_fn` and `module_path`, or None.
        technique: gives the changed model and its report.
        report_name: file name of the report in the artifact.

    Returns:
        The output artifact, for custom properties, and the report.

    Raises:
        EdgeError: the input doesn't allow it; nothing is left in the output then.
    """
    output = artifact_utils.get_single_instance(output_dict[keys.MODEL])
    with forgetting_gradients():
        step = read_step(input_dict, exec_properties)
        model, report = technique(step)
        write_model(output.uri, model, {PREPARATION: step.preparation, report_name: report})
    return output, report


def read_step(input_dict: Artifacts, exec_properties: dict[str, Any]) -> StepInput:
    """The model of `float_model` and the data of `examples`; see `run_step`."""
    schema = examples.transformed_schema(input_dict.get(keys.TRANSFORM_GRAPH, []), input_dict.get(keys.SCHEMA, []))
    module = load_user_module(exec_properties.get(keys.MODULE_PATH))
    model = _keras_model(input_dict, exec_properties.get(keys.MODEL_FN))
    sample = _sample(input_dict[keys.EXAMPLES], schema, model.input_names)
    model, preparation = prepare(model, sample)
    if module.loss_fn is not None:
        model.compile(**{**compile_arguments(model), "loss": module.loss_fn()})

    def dataset(split: str, label_key: str) -> tf.data.Dataset:
        read = training_dataset(input_dict[keys.EXAMPLES], split, schema, model.input_names, label_key)
        return module.dataset_fn(read) if module.dataset_fn is not None else read

    return StepInput(model, preparation, dataset, module)


def _sample(artifacts: list[Artifact], schema: schema_pb2.Schema, features: list[str]) -> dict[str, NDArray[Any]]:
    """A few real examples `[n, ...]` by feature name, on which a rewritten model is compared with the one that was given."""
    split = artifact_utils.decode_split_names(artifacts[0].split_names)[0]
    dataset = training_dataset(artifacts, split, schema, features, features[0])  # the label is of no interest
    batch, _ = next(iter(dataset.batch(_COMPARED)))
    return {name: values.numpy() for name, values in batch.items()}


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


def write_model(uri: str, model: tf_keras.Model, reports: Mapping[str, Config]) -> None:
    """Writes a Model artifact with reports by file name, the last one last; whole or not at all."""
    serving = path_utils.serving_model_dir(uri)
    with tempfile.TemporaryDirectory() as folder:  # Keras writes a SavedModel file by file
        model.save(str(Path(folder, "model")), save_format="tf")
        try:
            io_utils.copy_dir(str(Path(folder, "model")), serving)
            for name, report in reports.items():
                write_document(f"{uri}/{name}", report)  # last: where it is, all is
        except BaseException:
            if fileio.exists(serving):
                fileio.rmtree(serving)
            for name in reports:
                if fileio.exists(f"{uri}/{name}") and not fileio.isdir(f"{uri}/{name}"):
                    fileio.remove(f"{uri}/{name}")
            raise
