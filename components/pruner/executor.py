"""Model and transformed examples in, pruned model out; the work is `tfx_edge.optimize.pruning.prune`."""

import tempfile
from pathlib import Path
from typing import Any

import tf_keras
from absl import logging
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils, path_utils

from tfx_edge.components import examples, float_models, keys
from tfx_edge.components.documents import write_document
from tfx_edge.components.training_data import training_dataset
from tfx_edge.optimize.pruning import prune
from tfx_edge.schemas import EdgeError, PruningConfig, SparsityReport

REPORT = "sparsity.json"


class Executor(BaseExecutor):
    """Executes Pruner."""

    def Do(self, input_dict: dict[str, list[Artifact]], output_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> None:
        """Prunes `float_model` while fine-tuning it on `examples`.

        Args:
            input_dict: `float_model`, `examples`, and `transform_graph` or `schema`.
            output_dict: `model` gets `Format-Serving/` and `sparsity.json`.
            exec_properties: `config`, the JSON of a `PruningConfig`; `model_fn` or None.

        Raises:
            EdgeError: the input doesn't allow it; nothing is left in the output then.
        """
        config = PruningConfig.from_json(exec_properties[keys.CONFIG])
        schema = examples.transformed_schema(input_dict.get(keys.TRANSFORM_GRAPH, []), input_dict.get(keys.SCHEMA, []))
        model = _keras_model(input_dict, exec_properties.get(keys.MODEL_FN))
        tuning = config.fine_tuning
        dataset = training_dataset(input_dict[keys.EXAMPLES], tuning.split, schema, model.input_names, tuning.label_key)
        pruned, report = prune(model, dataset, config)
        output = artifact_utils.get_single_instance(output_dict[keys.MODEL])
        _write(output.uri, pruned, report)
        output.set_float_custom_property("sparsity", report.sparsity)
        logging.info("Pruned %s to a sparsity of %.3f.", ", ".join(x.layer for x in report.layers if x.pruned), report.sparsity)


def _keras_model(input_dict: dict[str, list[Artifact]], model_fn: str | None) -> tf_keras.Model:
    """The input model's Keras model, without which nothing can be pruned."""
    artifacts = input_dict[keys.FLOAT_MODEL]
    keras_model = float_models.load(artifacts, input_dict.get(keys.TRANSFORM_GRAPH), model_fn).keras_model
    if keras_model is None:
        raise EdgeError(
            f"the model at {artifact_utils.get_single_uri(artifacts)} was saved without a Keras 2 model, whose layers the Pruner needs; "
            "save it with tfx_edge.pipelines.save_model(model, fn_args) in the Trainer, or give the Pruner "
            "model_fn='package.module.function', which rebuilds it"
        )
    return keras_model


def _write(uri: str, model: tf_keras.Model, report: SparsityReport) -> None:
    """Writes the artifact whole or not at all."""
    serving = path_utils.serving_model_dir(uri)
    with tempfile.TemporaryDirectory() as folder:  # Keras writes a SavedModel file by file
        model.save(str(Path(folder, "model")), save_format="tf")
        try:
            io_utils.copy_dir(str(Path(folder, "model")), serving)
            write_document(f"{uri}/{REPORT}", report)  # last: where it is, all is
        except BaseException:
            if fileio.exists(serving):
                fileio.rmtree(serving)
            raise
