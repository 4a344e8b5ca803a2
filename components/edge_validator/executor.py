"""Artifacts in, verdict out."""

from typing import Any

from tensorflow_model_analysis.constants import ARROW_INPUT_COLUMN
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from tfx_edge.components import keys
from tfx_edge.components.documents import read_bytes, write_document
from tfx_edge.components.edge_model_files import FLATBUFFER, edge_digests
from tfx_edge.components.edge_validator.blessing import deciding_component, write_blessing
from tfx_edge.components.edge_validator.gate import Evidence, judge, with_raw_examples
from tfx_edge.components.edge_validator.told import tell_verdict
from tfx_edge.components.examples import split_sources, transformed_schema
from tfx_edge.components.observed import observed
from tfx_edge.schemas import EdgeError, GateConfig, Manifest
from tfx_edge.schemas.release import MANIFEST


class Executor(base_beam_executor.BaseBeamExecutor):
    """Runs the gate; a model that doesn't pass is a result, not a failure."""

    @observed
    def Do(self, input_dict: dict[str, list[Artifact]], output_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> None:
        """Judges one candidate.

        Args:
            input_dict: `model` with `Format-Serving/tflite`; `examples`; `transform_graph` or `schema`; `baseline_model` or none;
                `raw_examples` where the model takes raw features.
            output_dict: `evaluation` gets TFMA's files, `report` the `report.json`, and last `blessing` its file and properties.
            exec_properties: `config`, the JSON of a `GateConfig`.

        Raises:
            EdgeError: the model is no edge model, or the examples or the config are at fault; nothing is blessed then.
        """
        config = GateConfig.from_json(exec_properties[keys.CONFIG])
        model = artifact_utils.get_single_instance(input_dict[keys.MODEL])
        baseline = next(iter(input_dict.get(keys.BASELINE_MODEL) or []), None)
        graph = next(iter(input_dict.get(keys.TRANSFORM_GRAPH) or []), None)
        schema = transformed_schema(input_dict.get(keys.TRANSFORM_GRAPH) or [], input_dict.get(keys.SCHEMA) or [])
        evidence = Evidence(
            candidate=_flatbuffer(model),
            baseline=None if baseline is None else path_utils.serving_model_path(baseline.uri),
            transform_graph=None if graph is None else graph.uri,
            sources=split_sources(input_dict[keys.EXAMPLES], config.split, schema, _raw_records(config)),
            schema=schema,
        )
        manifest = _manifest(model)
        if manifest is not None and manifest.features == "raw":
            evidence = with_raw_examples(evidence, input_dict.get(keys.RAW_EXAMPLES) or [], manifest, config)
        report = judge(
            evidence,
            config,
            self._make_beam_pipeline(),
            artifact_utils.get_single_uri(output_dict[keys.EVALUATION]),
        )
        report = report.model_copy(update={"files": edge_digests(model.uri)})
        report_artifact = artifact_utils.get_single_instance(output_dict[keys.REPORT])
        write_document(f"{report_artifact.uri}/report.json", report)
        report_artifact.set_string_custom_property("current_model", model.uri)  # as blessings have it
        blessing = artifact_utils.get_single_instance(output_dict[keys.BLESSING])
        write_blessing(blessing, report.blessed, model, baseline, deciding_component(exec_properties, self._context))
        tell_verdict(report, model.uri)


def _manifest(model: Artifact) -> Manifest | None:
    """What the exporter says of a model; None of one that came without."""
    path = f"{model.uri}/{MANIFEST}"
    return Manifest.from_json(read_bytes(path)) if fileio.exists(path) else None


def _raw_records(config: GateConfig) -> str | None:
    """TFMA's name for the column of serialized examples, which preprocessing functions may want."""
    return ARROW_INPUT_COLUMN if config.preprocessing_function_names else None


def _flatbuffer(model: Artifact) -> str:
    path = f"{path_utils.serving_model_path(model.uri)}/{FLATBUFFER}"
    if not fileio.exists(path):
        raise EdgeError(
            f"the model at {model.uri} has no Format-Serving/tflite; give EdgeValidator an edge model, as TFLiteExporter makes it"
        )
    return path
