"""What goes to a device team beside the flatbuffer, from the flatbuffer alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tfx_edge.components.raw_features import golden_features as raw_golden_features
from tfx_edge.components.tflite_exporter.manifest import model_metadata
from tfx_edge.litert import inspect
from tfx_edge.litert.golden import golden_vectors
from tfx_edge.litert.metadata import write_metadata
from tfx_edge.litert.operator_report import operator_report
from tfx_edge.litert.targets.artifacts import golden_features, target_artifacts
from tfx_edge.optimize.raw_features import TransformGraph
from tfx_edge.schemas import ExportConfig, Preprocessing, SourceLayer, TensorRanges

GOLDEN, OPERATORS = "golden.npz", "ops.json"


@dataclass(frozen=True)
class Bundle:
    """A flatbuffer and its files.

    Attributes:
        model: the flatbuffer with its metadata.
        files: by name in `edge/`, each as chunks of its content.
    """

    model: bytes
    files: Mapping[str, Iterable[bytes]]


def make_bundle(
    config: ExportConfig,
    model: bytes,
    layers: Sequence[SourceLayer],
    ranges: TensorRanges,
    preprocessing: Preprocessing | None,
    inner: bytes,
    graph: TransformGraph | None,
    signature: str,
) -> Bundle:
    """Makes `golden.npz`, `ops.json`, and what the targets take. The same arguments give the same bytes.

    A model with operators of TensorFlow gets `ops.json` alone: LiteRT can't run it.

    Args:
        config: of the export.
        model: the flatbuffer, with all that it computes.
        layers: of the Keras model that it was made from.
        ranges: calibrated, which golden inputs keep to.
        preprocessing: what Transform does before the model.
        inner: the flatbuffer without preprocessing; `model` itself where it takes transformed features.
        graph: of the Transform before the Trainer, for a model that takes raw features.
        signature: the one that golden vectors and metadata are of.

    Raises:
        EdgeError: LiteRT can't run the model, or a target can't take it.
    """
    report = (operator_report(model, layers).to_json().encode(),)
    if any(operator.startswith(inspect.CUSTOM) for operator in inspect.operators(model)):
        return Bundle(model, {OPERATORS: report})
    model = write_metadata(model, model_metadata(config, model, ranges, preprocessing, signature), signature)
    raw = raw_golden_features(inner, graph, ranges) if config.features == "raw" and graph else None
    golden = golden_vectors(model, signature=signature, examples=raw, ranges=ranges)
    made = target_artifacts(model, config.targets, golden_features(model, golden), config.namespace)
    return Bundle(model, {GOLDEN: (golden,), OPERATORS: report, **made.files})
