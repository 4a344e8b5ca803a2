"""The gate itself: models, examples and config in, the report with the verdict out."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import apache_beam as beam
import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.tfxio import tfxio

from tfx_edge.components.documents import read_bytes
from tfx_edge.components.edge_validator.evaluation import evaluate
from tfx_edge.components.edge_validator.model_pair import ModelFault, ModelPaths
from tfx_edge.components.edge_validator.results import read_results, validation_faults
from tfx_edge.components.edge_validator.sizes import measure_sizes
from tfx_edge.components.edge_validator.verdict import SliceResult, comparisons, reasons
from tfx_edge.components.examples import adapter
from tfx_edge.litert.inspect import runtime
from tfx_edge.schemas import EdgeError, GateConfig, GateReport


@dataclass(frozen=True)
class Evidence:
    """What the gate judges by.

    Attributes:
        candidate: path of the flatbuffer.
        baseline: folder of the float SavedModel; None where there is none.
        transform_graph: folder of the TransformGraph artifact; None where there is none.
        sources: of the examples, at least one.
        schema: of the examples.
    """

    candidate: str
    baseline: str | None
    transform_graph: str | None
    sources: Sequence[tfxio.TFXIO]
    schema: schema_pb2.Schema


def judge(evidence: Evidence, config: GateConfig, pipeline: AbstractContextManager[beam.Pipeline], evaluation: str) -> GateReport:
    """Decides whether the candidate may leave.

    Args:
        evidence: models and examples.
        config: the conditions.
        pipeline: to evaluate with.
        evaluation: an empty folder for TFMA's files; stays empty when the models can't be evaluated.

    Raises:
        EdgeError: the label isn't among the examples' dense features, there are no examples, they don't fit their schema, or
            a metric doesn't exist. What is wrong with a model isn't raised: it is a reason in the report.
    """
    features = adapter(evidence.sources[0]).TypeSpecs()
    _check_label(config.label_key, features)
    flatbuffer = read_bytes(evidence.candidate)
    sizes = measure_sizes(flatbuffer, evidence.baseline, evidence.transform_graph, config.budget)
    found = list(sizes.reasons)
    results: list[SliceResult] = []
    if evidence.baseline is None:
        found.append(
            "baseline: there is none, so nothing tells what quantization cost; give EdgeValidator the float model as baseline_model"
        )
    else:
        paths = ModelPaths(evidence.candidate, evidence.baseline, evidence.transform_graph)
        try:
            examples = evaluate(pipeline, evidence.sources, evidence.schema, config, paths, evaluation)
        except ModelFault as fault:
            found.append(str(fault))
        else:
            results = read_results(evaluation, config)
            found += reasons(config, results, features) or validation_faults(evaluation)
            found += _not_evaluated(results, examples)
    return GateReport(
        blessed=not found,
        reasons=tuple(found),
        config=config,
        metrics=comparisons(config, results),
        size_bytes=sizes.size,
        gzip_bytes=sizes.gzip,
        baseline_size_bytes=sizes.baseline_size,
        baseline_gzip_bytes=sizes.baseline_gzip,
        runtime=runtime(),
    )


def _check_label(label: str, features: dict[str, tf.TypeSpec]) -> None:
    if label not in features:
        raise EdgeError(
            f"label_key {label!r}: no such feature in the examples, which have {', '.join(sorted(features))}; name one of these"
        )
    if not isinstance(features[label], tf.TensorSpec):
        raise EdgeError(f"label_key {label!r}: the schema gives it no fixed shape; give it one, as Transform does for a dense feature")


def _not_evaluated(results: Sequence[SliceResult], examples: int) -> list[str]:
    evaluated = sum(r.examples for r in results if not r.key)
    if evaluated == examples:
        return []
    return [f"TFMA evaluated {evaluated} of {examples} examples; this is a fault of the evaluation, run it again"]
