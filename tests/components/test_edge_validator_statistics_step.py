"""The comparison as a step of TFMA's pipeline: its slices and means are TFMA's, its statistics those of numpy."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
import tensorflow_model_analysis as tfma
from apache_beam.options.pipeline_options import PipelineOptions
from tensorflow_model_analysis.extractors import extractor, slice_key_extractor, unbatch_extractor
from tensorflow_model_analysis.metrics import metric_specs
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.slicer import slicer_lib

from tfx_edge.components.edge_validator.statistics.bootstrap import resample, resampled_estimate
from tfx_edge.components.edge_validator.statistics.compare import ComparePredictions, comparing, read_statistics
from tfx_edge.components.edge_validator.statistics.estimates import agrees
from tfx_edge.components.edge_validator.statistics.paired import from_document, paired
from tfx_edge.components.edge_validator.statistics.per_example import per_example
from tfx_edge.schemas import Threshold
from tfx_edge.schemas.statistics import PairedStatistics

N = 300
MODELS = ("candidate", "baseline")
PREDICT = "Predict"
RNG = np.random.default_rng(0)
FEATURES = {
    "group": RNG.integers(3, size=N),
    "city": np.array([b"oslo", b"rome"], object)[RNG.integers(2, size=N)][:, None],
    "height": np.round(RNG.random(N), 1).astype(np.float32),
}
SLICES = [
    config_pb2.SlicingSpec(),
    config_pb2.SlicingSpec(feature_keys=["group"]),
    config_pb2.SlicingSpec(feature_keys=["city"], feature_values={"group": "1"}),
    config_pb2.SlicingSpec(feature_keys=["height"]),
]


def threshold(metric: str, output: str | None = None, class_id: int | None = None, **config: Any) -> Threshold:
    return Threshold(metric=metric, config=config, upper_bound=1e9, output=output, class_id=class_id)


def softmax(logits: Any) -> Any:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True)).astype(np.float32)


def binary() -> tuple[Any, Any, Any]:
    labels = RNG.integers(2, size=(N, 1))
    baseline = np.clip(RNG.normal(0.3 + 0.4 * labels, 0.25), 0.01, 0.99).astype(np.float32)
    return labels, baseline, np.clip(baseline + RNG.normal(0, 0.05, (N, 1)), 0.01, 0.99).astype(np.float32)


def classes() -> tuple[Any, Any, Any]:
    labels = RNG.integers(5, size=N)
    logits = RNG.normal(size=(N, 5)) + 2 * np.eye(5)[labels]
    return labels, softmax(logits), softmax(logits + RNG.normal(0, 0.3, (N, 5)))


def one_hot() -> tuple[Any, Any, Any]:
    labels, baseline, candidate = classes()
    return np.eye(5, dtype=np.float32)[labels], baseline, candidate


def several_labels() -> tuple[Any, Any, Any]:
    labels = RNG.integers(2, size=(N, 3))
    baseline = np.clip(RNG.normal(0.3 + 0.4 * labels, 0.25), 0.01, 0.99).astype(np.float32)
    return labels, baseline, np.clip(baseline + RNG.normal(0, 0.05, (N, 3)), 0.01, 0.99).astype(np.float32)


def regression() -> tuple[Any, Any, Any]:
    labels = RNG.normal(3, 2, size=N).astype(np.float32)
    baseline = labels + RNG.normal(0, 1, N).astype(np.float32)
    return labels, baseline, baseline + RNG.normal(0, 0.1, N).astype(np.float32)


def extracts(labels: Any, baseline: Any, candidate: Any, weights: Any = None, size: int = 64) -> list[dict[str, Any]]:
    def cut(values: Any, rows: slice) -> Any:
        return {k: cut(v, rows) for k, v in values.items()} if isinstance(values, dict) else values[rows]

    whole = {
        tfma.FEATURES_KEY: FEATURES,
        tfma.LABELS_KEY: dict.fromkeys(MODELS, labels),
        tfma.PREDICTIONS_KEY: {"candidate": candidate, "baseline": baseline},
        **({} if weights is None else {tfma.EXAMPLE_WEIGHTS_KEY: dict.fromkeys(MODELS, weights)}),
    }
    return [cut(whole, slice(at, at + size)) for at in range(0, N, size)]


def config(thresholds: list[Threshold], weighted: bool = False, slices: list[Any] = SLICES) -> config_pb2.EvalConfig:
    def spec(t: Threshold) -> config_pb2.MetricsSpec:
        metric = config_pb2.MetricConfig(class_name=t.metric, config=json.dumps(t.config))
        found = config_pb2.MetricsSpec(metrics=[metric], model_names=MODELS, output_names=[t.output] if t.output else [])
        if t.class_id is not None:
            found.binarize.class_ids.values.append(t.class_id)
        return found

    weight = "weight" if weighted else ""
    return config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(name=m, model_type="tf_generic", label_key="y", example_weight_key=weight, is_baseline=m == "baseline")
            for m in MODELS
        ],
        slicing_specs=slices,
        metrics_specs=[spec(t) for t in thresholds],
    )


def runner(mode: str = "in_memory", workers: int = 1) -> PipelineOptions:
    return PipelineOptions(["--runner=DirectRunner", f"--direct_running_mode={mode}", f"--direct_num_workers={workers}"])


def compare(
    folder: Path, batches: list[dict[str, Any]], thresholds: list[Threshold], options: PipelineOptions | None = None, slices: Any = SLICES
) -> PairedStatistics:
    """The step alone."""
    with beam.Pipeline(options=options or runner()) as p:
        _ = p | beam.Create(batches) | ComparePredictions(thresholds, slices, str(folder))
    return read_statistics(str(folder))


def evaluate(
    folder: Path,
    batches: list[dict[str, Any]],
    eval_config: config_pb2.EvalConfig,
    thresholds: list[Threshold],
    seed: int | None = None,
) -> PairedStatistics:
    """The step in TFMA's pipeline."""
    extractors = comparing(
        [
            extractor.Extractor(PREDICT, beam.Map(dict)),
            unbatch_extractor.UnbatchExtractor(),
            slice_key_extractor.SliceKeyExtractor(eval_config=eval_config),
        ],
        PREDICT,
        thresholds,
        eval_config.slicing_specs,
        str(folder),
    )
    with beam.Pipeline(options=runner()) as p:
        evaluations = (
            p
            | beam.Create(batches)
            | tfma.ExtractAndEvaluate(
                extractors=extractors, evaluators=tfma.default_evaluators(eval_config=eval_config, random_seed_for_testing=seed)
            )
        )
        for writer in tfma.default_writers(output_path=str(folder), eval_config=eval_config):
            _ = evaluations | writer.stage_name >> writer.ptransform
    return read_statistics(str(folder))


def measured(folder: Path) -> Iterator[tuple[Any, dict[tuple[str, str, int | None], float]]]:
    """TFMA's values by slice, then by name, model and class."""
    for record in tfma.load_metrics(str(folder)):
        values = {
            (e.key.name, e.key.model_name, e.key.sub_key.class_id.value if e.key.HasField("sub_key") else None): e.value.double_value.value
            for e in record.metric_keys_and_values
            if not e.key.is_diff
        }
        yield slicer_lib.deserialize_slice_key(record.slice_key), values


CASES = {
    "binary": (
        binary,
        [
            threshold("BinaryAccuracy"),
            threshold("BinaryAccuracy", threshold=0.6, name="at_0.6"),
            threshold("BinaryCrossentropy"),
            threshold("LogCoshError"),
            threshold("MeanSquaredError"),
        ],
    ),
    "classes": (
        classes,
        [
            threshold("SparseCategoricalAccuracy"),
            threshold("SparseCategoricalCrossentropy"),
            threshold("SparseTopKCategoricalAccuracy", k=2),
            threshold("BinaryAccuracy", class_id=2),
            threshold("MeanSquaredError", class_id=2),
        ],
    ),
    "one_hot": (
        one_hot,
        [
            threshold("CategoricalAccuracy"),
            threshold("CategoricalCrossentropy", label_smoothing=0.1),
            threshold("KLDivergence"),
            threshold("CosineSimilarity"),
        ],
    ),
    "several_labels": (several_labels, [threshold("BinaryAccuracy"), threshold("BinaryCrossentropy"), threshold("MeanAbsoluteError")]),
}


@pytest.mark.parametrize(
    ("case", "weighted"), [("binary", False), ("classes", False), ("classes", True), ("one_hot", False), ("several_labels", True)]
)
def test_slices_and_means_are_tfmas(case: str, weighted: bool, tmp_path: Path) -> None:
    draw, thresholds = CASES[case]
    weights = RNG.uniform(0.5, 3, size=N).astype(np.float32) if weighted else None
    statistics = evaluate(tmp_path, extracts(*draw(), weights), config(thresholds, weighted, SLICES[:3]), thresholds)
    theirs = dict(measured(tmp_path))
    assert {s.key for s in statistics.slices} == set(theirs) and len(theirs) == 6
    for found in statistics.slices:
        for t, document in zip(thresholds, found.means, strict=True):
            assert document is not None, t.title
            comparison = from_document(document)
            for model, ours in (("candidate", comparison.candidate), ("baseline", comparison.baseline)):
                assert agrees(ours, theirs[found.key][_name(t), model, t.class_id]), (found.key, t.title)


def _name(t: Threshold) -> str:
    return str(metric_specs.metric_instance(config_pb2.MetricConfig(class_name=t.metric, config=json.dumps(t.config))).name)


@pytest.fixture(scope="module")
def two_outputs() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    of_digit, of_size = classes(), regression()
    return tuple({"digit": d, "size": s} for d, s in zip(of_digit, of_size, strict=True))  # type: ignore[return-value]


THRESHOLDS = [
    threshold("SparseCategoricalAccuracy", "digit"),
    threshold("MeanSquaredError", "size"),
    threshold("RootMeanSquaredError", "size"),
]


@pytest.mark.parametrize("options", [runner(), runner("multi_processing", 2)], ids=["in_memory", "multi_processing"])
def test_statistics_are_those_of_numpy_in_each_slice_and_output(two_outputs: Any, tmp_path: Path, options: PipelineOptions) -> None:
    labels, baseline, candidate = two_outputs
    statistics = compare(tmp_path, extracts(labels, baseline, candidate, size=37), THRESHOLDS, options)
    assert statistics.slices[0].key == ()
    for found in statistics.slices:
        rows = np.ones(N, bool)
        for feature, value in found.key:
            rows &= np.array([v.decode() if isinstance(v, bytes) else v for v in FEATURES[feature].ravel().tolist()], object) == value
        assert found.examples == rows.sum() > 0
        right = [p["digit"].argmax(1)[rows] == labels["digit"][rows] for p in (baseline, candidate)]
        squares = [((p["size"] - labels["size"])[rows].astype(np.float64)) ** 2 for p in (baseline, candidate)]
        for document, (b, c) in zip(found.means, (right, squares), strict=False):
            expected = paired(b, c)
            got = from_document(document)  # type: ignore[arg-type]
            assert (got.lower, got.higher) == (expected.lower, expected.higher)
            assert got.difference.mean == pytest.approx(expected.difference.mean, abs=1e-6)
            assert got.difference.second == pytest.approx(expected.difference.second, rel=1e-5)
        assert found.means[2] is None  # a root of a mean is no mean
        digit, size = found.drift
        assert (digit.output, digit.flip_rule, size.output, size.flip_rule) == ("digit", "argmax", "size", None)
        assert digit.flips == (baseline["digit"].argmax(1) != candidate["digit"].argmax(1))[rows].sum()
        assert size.worst_abs_error == pytest.approx(np.abs(baseline["size"] - candidate["size"])[rows].max())


def test_the_same_run_gives_the_same_bytes(two_outputs: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        compare(tmp_path / name, extracts(*two_outputs), THRESHOLDS)
    assert (tmp_path / "a/statistics.json").read_bytes() == (tmp_path / "b/statistics.json").read_bytes()


def test_a_value_that_is_no_number_leaves_its_slice_without_a_mean(tmp_path: Path) -> None:
    labels, baseline, candidate = regression()
    labels[FEATURES["group"] == 2] = np.nan
    thresholds = [threshold("MeanSquaredError")]
    statistics = compare(tmp_path, extracts(labels, baseline, candidate), thresholds, slices=SLICES[:2])
    assert [(s.key, s.means[0] is None) for s in statistics.slices] == [
        ((), True),
        ((("group", 0),), False),
        ((("group", 1),), False),
        ((("group", 2),), True),
    ]


@pytest.mark.parametrize(
    "metric", ["AUC", "RootMeanSquaredError", "Precision", "MeanIoU", "F1Score", "MeanMetricWrapper", "Mean", "NDCG", "no"]
)
def test_what_is_no_mean_over_examples_has_no_value_of_each(metric: str) -> None:
    assert per_example(metric, {}) is None


def test_features_that_a_batch_was_preprocessed_to_are_sliced_by_first(tmp_path: Path) -> None:
    labels, baseline, candidate = regression()
    batches = extracts(labels, baseline, candidate)
    for batch in batches:
        changed = {"group": batch[tfma.FEATURES_KEY]["group"] * 0 + 7}
        batch["transformed_features"] = dict.fromkeys(MODELS, changed)
    thresholds = [threshold("MeanSquaredError")]
    statistics = evaluate(tmp_path, batches, config(thresholds, slices=SLICES[:2]), thresholds)
    assert [s.key for s in statistics.slices] == [(), (("group", 7),)] == sorted(dict(measured(tmp_path)))


def test_tfmas_bootstrap_gives_estimates_of_what_is_no_mean_and_pairs_both_models(tmp_path: Path) -> None:
    thresholds = [threshold("AUC", name="auc"), threshold("BinaryAccuracy")]
    batches = extracts(*binary())
    statistics = evaluate(tmp_path, batches, resample(config(thresholds, slices=SLICES[:1])), thresholds, seed=3)
    (record,) = tfma.load_metrics(str(tmp_path))
    estimates = {
        (entry.key.name, entry.key.model_name, entry.key.is_diff): estimate(1.0)
        for entry in record.metric_keys_and_values
        if (estimate := resampled_estimate(entry)) is not None
    }
    change = estimates["auc", "candidate", True]
    assert change.freedom == 19 and change.method == "poisson_bootstrap"
    assert change.value == pytest.approx(estimates["auc", "candidate", False].value - estimates["auc", "baseline", False].value)
    assert 0 < change.error < estimates["auc", "candidate", False].error / 2
    # Where both ways lead to an error, they agree: the ratio of one from 20 resamples to the true one lies between these.
    document = statistics.slices[0].means[1]
    assert document is not None
    comparison = from_document(document)
    analytic = np.sqrt(comparison.difference.second) / comparison.difference.weight
    assert 0.5 < estimates["binary_accuracy", "candidate", True].error / analytic < 1.6
