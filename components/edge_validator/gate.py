"""The gate itself: models, examples and config in, the report with the verdict out."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import apache_beam as beam
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types.artifact import Artifact
from tfx_bsl.tfxio import tfxio

from tfx_edge.components.documents import read_bytes
from tfx_edge.components.edge_validator.baseline import float_flatbuffer
from tfx_edge.components.edge_validator.certainty import undecided
from tfx_edge.components.edge_validator.cost import measure_cost
from tfx_edge.components.edge_validator.drift_limits import beyond_limits
from tfx_edge.components.edge_validator.evaluation import evaluate
from tfx_edge.components.edge_validator.layers import tabulate_layers
from tfx_edge.components.edge_validator.model_pair import ModelFault, Models
from tfx_edge.components.edge_validator.raw_examples import TransformedSource, raw_features, transformed_sources
from tfx_edge.components.edge_validator.results import read_results, validation_faults
from tfx_edge.components.edge_validator.targets import check_targets
from tfx_edge.components.edge_validator.verdict import SliceResult, comparisons, drift_by_slice, reasons
from tfx_edge.components.examples import adapter
from tfx_edge.components.raw_features import with_preprocessing
from tfx_edge.litert.inspect import runtime
from tfx_edge.optimize.raw_features import TransformGraph
from tfx_edge.schemas import EdgeError, GateConfig, GateReport, Manifest

SAMPLE = 64  # examples for latency, memory, targets and errors by operator


@dataclass(frozen=True)
class Evidence:
    """What the gate judges by.

    Attributes:
        candidate: path of the flatbuffer.
        baseline: folder of the float SavedModel; None where there is none.
        transform_graph: folder of the TransformGraph artifact; None where there is none.
        sources: of the examples, at least one.
        schema: of the examples.
        raw: the candidate takes raw features, which the sources give beside the transformed ones.
        unfed: why the candidate can't be fed; None where it can.
    """

    candidate: str
    baseline: str | None
    transform_graph: str | None
    sources: Sequence[tfxio.TFXIO | TransformedSource]
    schema: schema_pb2.Schema
    raw: bool = False
    unfed: str | None = None


def with_raw_examples(evidence: Evidence, raw_examples: Sequence[Artifact], manifest: Manifest, config: GateConfig) -> Evidence:
    """The evidence on a candidate that takes raw features: it is fed those, the baseline what Transform makes of the same examples.

    Args:
        evidence: with the transformed examples.
        raw_examples: those that Transform was given; none are a reason against a blessing.
        manifest: of the candidate.
        config: names the split.

    Raises:
        EdgeError: there is no such split, or preprocessing functions are to make what Transform makes.
    """
    if not raw_examples or evidence.transform_graph is None:
        lacking = "raw_examples" if not raw_examples else "transform_graph"
        return replace(evidence, unfed=f"candidate: takes raw features, and there is no {lacking}; give EdgeValidator {lacking}")
    if config.preprocessing_function_names:
        names = ", ".join(config.preprocessing_function_names)
        raise EdgeError(f"preprocessing_function_names {names}: the model takes raw features, which Transform transforms; leave them out")
    sources = transformed_sources(raw_examples, config.split, evidence.transform_graph, evidence.schema, manifest.signature.input_names)
    return replace(evidence, sources=sources, raw=True)


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
    for label in config.label_features if not config.preprocessing_function_names else ():  # which may make the labels
        _check_feature("label", label, features)
    if config.example_weight_key is not None and not config.preprocessing_function_names:
        _check_feature("example_weight_key", config.example_weight_key, features)
    flatbuffer = read_bytes(evidence.candidate)
    reference = cache(lambda: _float_flatbuffer(evidence, config))
    found: list[str] = []
    results: list[SliceResult] = []
    sample: Mapping[str, NDArray[Any]] | None = None
    if evidence.unfed is not None:
        found.append(evidence.unfed)
    elif evidence.baseline is None:
        found.append(
            "baseline: there is none, so nothing tells what quantization cost; give EdgeValidator the float model as baseline_model"
        )
    else:
        try:
            evaluated = evaluate(
                pipeline, evidence.sources, evidence.schema, config, _models(evidence, evidence.baseline, config), evaluation, SAMPLE
            )
        except ModelFault as fault:
            found.append(str(fault))
        else:
            sample = raw_features(evaluated.sample) if evidence.raw else evaluated.sample
            results = read_results(evaluation, config)
            found += reasons(config, results, features) or validation_faults(evaluation)
            found += undecided(config, results)
            found += beyond_limits(config.drift, next((r.drift for r in results if not r.key), ()))
            found += _not_evaluated(results, evaluated.examples)
    cost = measure_cost(flatbuffer, reference, sample, config.budget, config.num_threads, config.time_limit_s)
    targets = check_targets(flatbuffer, config.targets, sample, config.time_limit_s)
    layers, notes = tabulate_layers(flatbuffer, reference, sample, config)
    found = [*cost.reasons, *found, *(reason for target in targets for reason in target.reasons)]
    return GateReport(
        blessed=not found,
        model_digest=hashlib.sha256(flatbuffer).hexdigest(),
        reasons=tuple(found),
        config=config,
        metrics=comparisons(config, results),
        drift=drift_by_slice(results),
        layers=layers,
        size_bytes=cost.size_bytes,
        gzip_bytes=cost.gzip_bytes,
        baseline_size_bytes=cost.baseline_size_bytes,
        baseline_gzip_bytes=cost.baseline_gzip_bytes,
        latency_ms=None if cost.latency is None else cost.latency.candidate_ms,
        baseline_latency_ms=None if cost.latency is None else cost.latency.reference_ms,
        peak_memory_bytes=cost.peak_memory_bytes,
        operators=cost.operators,
        targets=targets,
        notes=notes,
        runtime=runtime(),
    )


def _models(evidence: Evidence, baseline: str, config: GateConfig) -> Models:
    return Models(
        evidence.candidate,
        baseline,
        evidence.transform_graph,
        signature=config.signature,
        outputs=tuple(metric.output for metric in (*config.thresholds, *config.metrics)),
        num_threads=config.num_threads,
        time_limit_s=config.time_limit_s,
        raw=evidence.raw,
    )


def _float_flatbuffer(evidence: Evidence, config: GateConfig) -> bytes:
    if evidence.baseline is None:
        raise EdgeError("there is no baseline")
    model = float_flatbuffer(evidence.baseline, evidence.transform_graph, config.signature)
    if not evidence.raw:
        return model
    return with_preprocessing(model, None if evidence.transform_graph is None else TransformGraph(evidence.transform_graph))


def _check_feature(what: str, name: str, features: dict[str, tf.TypeSpec]) -> None:
    if name not in features:
        raise EdgeError(f"{what} {name!r}: no such feature in the examples, which have {', '.join(sorted(features))}; name one of these")
    if not isinstance(features[name], tf.TensorSpec):
        raise EdgeError(f"{what} {name!r}: the schema gives it no fixed shape; give it one, as Transform does for a dense feature")


def _not_evaluated(results: Sequence[SliceResult], examples: int) -> list[str]:
    evaluated = sum(r.examples for r in results if not r.key)
    if evaluated == examples:
        return []
    return [f"TFMA evaluated {evaluated} of {examples} examples; this is a fault of the evaluation, run it again"]
