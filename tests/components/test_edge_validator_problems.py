"""Every kind of problem that TFMA knows, through the gate, against values computed by hand; baselines are float flatbuffers here."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gate_data
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from sklearn import metrics as sklearn_metrics

from tfx_edge.schemas import GateConfig, Metric, Slice, Threshold

N = 300
X = np.random.default_rng(5).normal(size=(N, 4)).astype(np.float32)
NOISE = np.random.default_rng(6).normal(size=(N, 3))
W = np.array([[1.0, -0.5, 0.2], [0.3, 1.2, -0.4], [-0.7, 0.1, 0.9], [0.2, -0.3, 0.4]], np.float32)
ROUGH = np.round(W, 0)  # what stands for quantized weights: near, but not the same
GROUP = (np.arange(N) % 3).astype(np.int64)


def sigmoid(v: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-v))


def run(
    folder: Path,
    function: Callable[..., Any],
    data: Mapping[str, np.ndarray],
    config: dict[str, Any],
    beam_args: Sequence[str] = gate_data.BEAM_ARGS,
) -> SimpleNamespace:
    """The gate on two flatbuffers, of a function of weights and x: with the weights, and with rough ones."""
    baseline = folder / "baseline" / "Format-Serving"
    baseline.mkdir(parents=True)
    (baseline / "tflite").write_bytes(gate_data.flatbuffer(tf.Module(), lambda _, x: function(tf.constant(W), x), x=(4,)))
    candidate = gate_data.flatbuffer(tf.Module(), lambda _, x: function(tf.constant(ROUGH), x), x=(4,))
    features = {"x": X, "group": GROUP, **data}
    return gate_data.run_gate(
        folder,
        model=candidate,
        baseline=str(folder / "baseline"),
        data=features,
        config=GateConfig(layer_examples=0, **config),
        beam_args=beam_args,
    )


def values(result: SimpleNamespace, metric: str, slice_: str = "Overall") -> tuple[float, float]:
    """Baseline's and candidate's value in the report."""
    (found,) = [m for m in result.report.metrics if m.metric == metric and m.slice == slice_]
    assert found.difference == pytest.approx(found.candidate - found.baseline)
    return found.baseline, found.candidate


def plots(result: SimpleNamespace, model: str = "candidate") -> dict[Any, Any]:
    return tfma.load_eval_result(str(result.evaluation), model_name=model).plots[0][1]


def test_binary_classification_with_plots(tmp_path: Path) -> None:
    label = (X @ W[:, 0] + NOISE[:, 0] > 0).astype(np.int64)
    result = run(
        tmp_path,
        lambda w, x: tf.sigmoid(x @ w[:, :1]),
        {"label": label},
        {
            "label_key": "label",
            "thresholds": [Threshold(metric="AUC", max_drop=0.5), Threshold(metric="BinaryAccuracy", max_drop=0.5)],
            "metrics": [Metric(metric="ConfusionMatrixPlot"), Metric(metric="CalibrationPlot")],
            "slices": [Slice(feature_keys=["group"])],
        },
    )
    assert result.report.blessed
    for slice_, rows in {"Overall": slice(None), "group=1": GROUP == 1}.items():
        scores = [sigmoid(X @ w[:, 0])[rows] for w in (W, ROUGH)]
        np.testing.assert_allclose(
            values(result, "AUC", slice_), [sklearn_metrics.roc_auc_score(label[rows], s) for s in scores], atol=1e-3
        )
        np.testing.assert_allclose(values(result, "BinaryAccuracy", slice_), [((s > 0.5) == label[rows]).mean() for s in scores], rtol=1e-6)
    assert {"confusionMatrixAtThresholds", "calibrationHistogramBuckets"} <= set(plots(result)[""][""])
    shown = tfma.load_eval_result(str(result.evaluation), model_name="candidate")
    table = tfma.view.render_slicing_metrics(shown, slicing_column="group")
    assert sorted(row["slice"] for row in table.data) == ["group:0", "group:1", "group:2"]
    assert "calibrationHistogramBuckets" in tfma.view.render_plot(shown).data


def test_one_class_and_averages_over_classes(tmp_path: Path) -> None:
    label = np.argmax(X @ W + NOISE, axis=1)
    result = run(
        tmp_path,
        lambda w, x: tf.nn.softmax(x @ w),
        {"label": label},
        {
            "label_key": "label",
            "thresholds": [
                Threshold(metric="Precision", class_id=1, max_drop=0.9),
                Threshold(metric="Recall", average="macro", class_ids=(0, 2), max_drop=0.9),
                Threshold(metric="Precision", average="micro", max_drop=0.9),
                Threshold(metric="SparseTopKCategoricalAccuracy", config={"k": 2}, max_drop=0.9),
            ],
            "metrics": [Metric(metric="MultiClassConfusionMatrixPlot"), Metric(metric="SparseCategoricalAccuracy")],
        },
    )
    assert result.report.blessed

    def of(w: np.ndarray) -> tuple[float, ...]:
        scores = np.exp(X @ w)
        scores /= scores.sum(axis=1, keepdims=True)
        picked, truth = scores > 0.5, np.eye(3)[label] == 1
        recall = [picked[truth[:, c], c].mean() for c in (0, 2)]
        top = np.argsort(-scores, axis=1)[:, :2]
        accuracy = (scores.argmax(axis=1) == label).mean()
        return truth[picked[:, 1], 1].mean(), np.mean(recall), truth[picked].mean(), (top == label[:, None]).any(axis=1).mean(), accuracy

    titles = (
        "Precision of class 1",
        "macro Recall of classes 0, 2",
        "micro Precision",
        "SparseTopKCategoricalAccuracy",
        "SparseCategoricalAccuracy",
    )
    for title, baseline, candidate in zip(titles, of(W), of(ROUGH), strict=True):
        np.testing.assert_allclose(values(result, title), (baseline, candidate), rtol=1e-5, err_msg=title)
    assert "multiClassConfusionMatrixAtThresholds" in plots(result)[""][""]


def test_multi_label_classification(tmp_path: Path) -> None:
    label = (X @ W + NOISE > 0.3).astype(np.int64)
    result = run(
        tmp_path,
        lambda w, x: tf.sigmoid(x @ w),
        {"label": label},
        {
            "label_key": "label",
            "thresholds": [Threshold(metric="AUC", class_id=2, max_drop=0.5), Threshold(metric="BinaryAccuracy", max_drop=0.5)],
            "metrics": [Metric(metric="MultiLabelConfusionMatrixPlot")],
        },
    )
    assert result.report.blessed
    scores = [sigmoid(X @ w) for w in (W, ROUGH)]
    expected = [sklearn_metrics.roc_auc_score(label[:, 2], s[:, 2]) for s in scores]
    np.testing.assert_allclose(values(result, "AUC of class 2"), expected, atol=1e-3)
    np.testing.assert_allclose(values(result, "BinaryAccuracy"), [((s > 0.5) == label).mean() for s in scores], rtol=1e-6)
    (drift,) = result.report.drift[0].outputs
    assert drift.flip_rate == pytest.approx(((scores[0] > 0.5) != (scores[1] > 0.5)).any(axis=1).mean())
    assert "multiLabelConfusionMatrixAtThresholds" in plots(result)[""][""]


def test_regression_with_example_weights(tmp_path: Path) -> None:
    target = (X @ W[:, 0] + NOISE[:, 0]).astype(np.float32)
    weight = (1 + GROUP).astype(np.float32)
    result = run(
        tmp_path,
        lambda w, x: x @ w[:, :1],
        {"target": target, "weight": weight},
        {
            "label_key": "target",
            "example_weight_key": "weight",
            "thresholds": [Threshold(metric="MeanSquaredError", max_drop=10), Threshold(metric="MeanAbsoluteError", max_drop=10)],
            "confidence": 0.9,
        },
    )
    assert result.report.blessed
    errors = [X @ w[:, 0] - target for w in (W, ROUGH)]
    np.testing.assert_allclose(values(result, "MeanSquaredError"), [np.average(e**2, weights=weight) for e in errors], rtol=1e-5)
    np.testing.assert_allclose(values(result, "MeanAbsoluteError"), [np.average(abs(e), weights=weight) for e in errors], rtol=1e-5)
    assert {m.examples for m in result.report.metrics} == {N}
    intervals = [m.interval for m in result.report.metrics]
    assert all(i is not None and i.method == "paired_t" for i in intervals)


def test_ranking_by_query(tmp_path: Path) -> None:
    query, gain = (np.arange(N) // 10).astype(np.int64), np.clip(np.round(X @ W[:, 0] + NOISE[:, 0]), 0, 4).astype(np.float32)
    result = run(
        tmp_path,
        lambda w, x: x @ w[:, :1],
        {"gain": gain, "query": query, "label": (gain > 1).astype(np.int64)},
        {
            "label_key": "label",
            "thresholds": [Threshold(metric="NDCG", config={"gain_key": "gain"}, top_k=3, query_key="query", max_drop=0.5)],
            "confidence": 0.8,
        },
    )
    assert result.report.blessed, result.report.reasons

    def ndcg(scores: np.ndarray) -> float:
        discount = 1 / np.log2(np.arange(2, 5))
        found = []
        for q in range(N // 10):
            gains = gain[query == q]
            best = np.sort(gains)[::-1][:3] @ discount
            found.append(gains[np.argsort(-scores[query == q], kind="stable")][:3] @ discount / best if best else 0.0)
        return float(np.mean(found))

    np.testing.assert_allclose(values(result, "NDCG at 3 by query"), [ndcg(X @ w[:, 0]) for w in (W, ROUGH)], rtol=1e-5)
    (comparison,) = result.report.metrics
    assert comparison.interval is not None and comparison.interval.method == "poisson_bootstrap"


def test_each_output_has_its_own_labels(tmp_path: Path) -> None:
    kind, size = np.argmax(X @ W + NOISE, axis=1), (X @ W[:, 0] + NOISE[:, 0]).astype(np.float32)
    result = run(
        tmp_path,
        lambda w, x: {"kind": tf.nn.softmax(x @ w), "size": x @ w[:, :1]},
        {"kind_label": kind, "size_label": size},
        {
            "label_keys": {"kind": "kind_label", "size": "size_label"},
            "thresholds": [
                Threshold(metric="SparseCategoricalAccuracy", output="kind", max_drop=0.9),
                Threshold(metric="MeanAbsoluteError", output="size", max_drop=10),
            ],
            "slices": [Slice(feature_keys=["group"])],
            "confidence": 0.9,
        },
    )
    assert result.report.blessed
    accuracy = [((X @ w).argmax(axis=1) == kind).mean() for w in (W, ROUGH)]
    np.testing.assert_allclose(values(result, "SparseCategoricalAccuracy of output 'kind'"), accuracy, rtol=1e-6)
    errors = [abs(X @ w[:, 0] - size)[GROUP == 2].mean() for w in (W, ROUGH)]
    np.testing.assert_allclose(values(result, "MeanAbsoluteError of output 'size'", "group=2"), errors, rtol=1e-5)
    assert {d.output: d.flip_rate is None for d in result.report.drift[0].outputs} == {"kind": False, "size": True}
    assert all(m.interval is not None for m in result.report.metrics)


def test_several_processes_measure_what_one_does(tmp_path: Path) -> None:
    target = (X @ W[:, 0] + NOISE[:, 0]).astype(np.float32)
    result = run(
        tmp_path,
        lambda w, x: x @ w[:, :1],
        {"target": target},
        {
            "label_key": "target",
            "thresholds": [Threshold(metric="MeanSquaredError", max_drop=10)],
            "metrics": [Metric(metric="MeanAbsoluteError")],
            "slices": [Slice(feature_keys=["group"])],
            "batch_size": 16,
            "confidence": 0.9,
        },
        beam_args=("--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"),
    )
    assert result.report.blessed, result.report.reasons
    for slice_, rows in {"Overall": slice(None), "group=1": GROUP == 1}.items():
        errors = [(X @ w[:, 0] - target)[rows] for w in (W, ROUGH)]
        np.testing.assert_allclose(values(result, "MeanSquaredError", slice_), [np.mean(e**2) for e in errors], rtol=1e-5)
        np.testing.assert_allclose(values(result, "MeanAbsoluteError", slice_), [np.mean(abs(e)) for e in errors], rtol=1e-5)
