"""What the gate keeps of the two models' decisions: confusion matrices, and the examples on which they differ most."""

import base64
import itertools
from pathlib import Path
from typing import Any

import gate_data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfx_edge.components.edge_validator.decisions import Decided, MergeDecisions, _decided, _document
from tfx_edge.components.edge_validator.example_view import example_view
from tfx_edge.schemas import GateConfig, OutputDecisions, PairedDecisions, Threshold

N, K = 120, 4
RNG = np.random.default_rng(0)
LABELS = RNG.integers(K, size=N)
BASELINE = RNG.dirichlet(np.ones(K), N).astype(np.float32)
CANDIDATE = RNG.dirichlet(np.ones(K), N).astype(np.float32)
X = RNG.normal(size=(N, 3)).astype(np.float32)


def batch(at: slice, labels: Any = LABELS, baseline: Any = BASELINE, candidate: Any = CANDIDATE, x: Any = X) -> dict[str, Any]:
    """A batch as TFMA's prediction step gives it; the label is among the features too."""
    return {
        "features": {"x": x[at], "label": labels[at]},
        "labels": {"candidate": labels[at], "baseline": labels[at]},
        "predictions": {"candidate": candidate[at], "baseline": baseline[at]},
    }


def found(extracts: dict[str, Any], count: int = 5) -> dict[str | None, Decided]:
    return dict(_decided(extracts, ["label"], count, {}))


def document(*batches: dict[str, Any], count: int = 5) -> OutputDecisions:
    merge = MergeDecisions(count)
    merged = merge.create_accumulator()
    for extracts in batches:
        merged = merge.add_input(merged, found(extracts, count))
    (output,) = _document(merge.extract_output(merged)).outputs
    return output


def test_confusion_matrices_count_each_label_with_each_models_decision() -> None:
    matrix = document(batch(slice(0, 70)), batch(slice(70, N))).confusion
    assert matrix is not None
    for name, predictions in (("baseline", BASELINE), ("candidate", CANDIDATE)):
        wanted = np.zeros((K, K), int)
        np.add.at(wanted, (LABELS, predictions.argmax(axis=1)), 1)
        assert np.array_equal(getattr(matrix, name), wanted)
    assert np.sum(matrix.difference) == 0


def test_the_worst_examples_are_those_with_the_largest_error_with_their_features_and_without_the_label() -> None:
    output = document(batch(slice(0, N)), count=7)
    errors = np.abs(BASELINE.astype(float) - CANDIDATE).max(axis=1)
    worst = np.argsort(-errors)[:7]
    assert [d.error for d in output.worst] == pytest.approx(errors[worst])
    for disagreement, i in zip(output.worst, worst, strict=True):
        assert disagreement.label == LABELS[i]
        assert (disagreement.baseline_decision, disagreement.candidate_decision) == (BASELINE[i].argmax(), CANDIDATE[i].argmax())
        assert disagreement.flipped == (BASELINE[i].argmax() != CANDIDATE[i].argmax())
        assert [(v.baseline, v.candidate) for v in disagreement.predictions] == [
            (float(b), float(c)) for b, c in zip(BASELINE[i], CANDIDATE[i], strict=True)
        ]
        (feature,) = disagreement.features
        assert feature.name == "x" and feature.values == tuple(map(float, X[i]))


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_batches_merged_in_any_order_and_tree_give_the_same_document(data: st.DataObject) -> None:
    # Rounded, so that errors tie, and with copies of examples.
    baseline, candidate = (np.round(p * 4) / 4 for p in (BASELINE[:24], CANDIDATE[:24]))
    worst = np.argsort(-np.abs(baseline - candidate).max(axis=1))[:4].tolist()
    whole = np.array([*range(24), *worst])
    order = np.array(data.draw(st.permutations(whole.tolist())))
    cuts = sorted({0, 28, *data.draw(st.lists(st.integers(1, 27), max_size=6))})
    merge = MergeDecisions(5)
    parts = [
        merge.add_input(merge.create_accumulator(), found(batch(order[a:b], LABELS[:24], baseline, candidate, X[:24])))
        for a, b in itertools.pairwise(cuts)
    ]
    parts.append(merge.create_accumulator())
    while len(parts) > 1:
        parts = data.draw(st.permutations(parts))
        take = data.draw(st.integers(2, len(parts)))
        parts = [merge.merge_accumulators(parts[:take]), *parts[take:]]
    assert len({d.example for d in _document(parts[0]).outputs[0].worst}) == 5
    assert _document(parts[0]) == _document(found(batch(whole, LABELS[:24], baseline, candidate, X[:24])))


def test_examples_on_which_nothing_differs_are_none_of_the_worst() -> None:
    candidate = BASELINE.copy()
    candidate[3] = BASELINE[3][::-1]
    assert len(document(batch(slice(0, N), candidate=candidate)).worst) == 1


def test_one_probability_is_counted_by_the_side_of_a_half_and_a_logit_by_its_sign() -> None:
    labels = RNG.integers(2, size=(N, 1))
    probability = RNG.random((N, 1)).astype(np.float32)
    output = document(batch(slice(0, N), labels, probability, 1 - probability))
    assert output.rule == "above 0.5" and output.confusion is not None
    right = int(((probability > 0.5) == labels).sum())
    assert np.trace(output.confusion.baseline) == right and np.trace(output.confusion.candidate) == N - right
    logits = (4 * probability - 2).astype(np.float32)
    output = document(batch(slice(0, 60), labels, probability, probability), batch(slice(60, N), labels, logits, logits))
    assert output.rule == "above 0", "one logit tells that all are"


@pytest.mark.parametrize(
    ("labels", "size", "why"),
    [
        (RNG.normal(size=N).astype(np.float32), K, "labels are no classes"),
        (RNG.integers(51, size=N), 51, "it has 51 classes"),
        (RNG.integers(2, size=(N, K)), K, "several labels"),
    ],
)
def test_where_there_is_no_confusion_matrix_the_document_says_why(labels: Any, size: int, why: str) -> None:
    predictions = RNG.random((N, size)).astype(np.float32)
    output = document(batch(slice(0, N), labels, predictions, predictions[::-1].copy()))
    assert output.confusion is None and why in output.no_confusion
    assert len(output.worst) == 5
    assert all(len(d.predictions) <= 10 for d in output.worst)


def test_a_single_batch_whose_labels_are_no_classes_leaves_the_matrix_out() -> None:
    broken = LABELS.astype(np.float32)
    broken[100] = 0.5
    assert document(batch(slice(0, 60), broken), batch(slice(60, N), broken)).confusion is None


def test_a_feature_shaped_as_an_image_is_drawn_small_and_others_are_numbers() -> None:
    image = np.zeros((130, 100, 3), np.float32)
    image[0, 0] = [1, 0.5, 0]
    features = {f.name: f for f in example_view({"a": np.array([1.5, np.nan]), "photo": image, "word": np.array(b"<b>", object)})}
    assert next(iter(features)) == "photo"
    photo = features["photo"].image
    assert photo is not None and (photo.height, photo.width, photo.channels, photo.step) == (44, 34, 3, 3)
    assert (photo.low, photo.high) == (0, 1)
    assert base64.b64decode(photo.pixels)[:6] == bytes([255, 128, 0, 0, 0, 0])
    assert features["a"].values == (1.5, "nan") and features["a"].image is None
    assert features["word"].values == ("<b>",)
    (constant,) = example_view({"flat": np.full((8, 8, 1), 1000.0)})
    assert constant.image is not None and (constant.image.low, constant.image.high) == (1000, 1001)


def test_an_example_has_no_more_features_and_values_than_a_page_can_show() -> None:
    view = example_view({f"f{i:02}": np.arange(40) for i in range(30)})
    assert len(view) == 24 and all(len(f.values) == 16 and f.shape == (40,) for f in view)


@pytest.mark.parametrize("kept", [3, 0])
def test_the_gate_writes_them_beside_its_evaluation_and_keeps_no_example_if_told_so(tmp_path: Path, kept: int) -> None:
    data = gate_data.examples(200)
    model = gate_data.train(data)
    gate_data.saved_model(tmp_path / "float" / "Format-Serving", model, lambda keras, x: keras(x))
    config = GateConfig(
        label_key="label",
        thresholds=(Threshold(metric="SparseCategoricalAccuracy", max_drop=0.5),),
        layer_examples=0,
        batch_size=64,
        worst_examples=kept,
    )
    result = gate_data.run_gate(
        tmp_path, model=gate_data.int8_flatbuffer(model, data["x"]), baseline=str(tmp_path / "float"), data=data, config=config
    )
    assert result.report.blessed, result.report.reasons
    text = (result.evaluation / "decisions.json").read_bytes()
    (output,) = PairedDecisions.from_json(text).outputs
    assert output.confusion is not None and np.sum(output.confusion.candidate) == 200
    flips = result.report.drift[0].outputs[0].flips
    moved = np.abs(output.confusion.difference).sum()
    assert moved <= 2 * (flips or 0)
    assert len(output.worst) == kept
    assert all({f.name for f in d.features} == {"x", "group", "city"} for d in output.worst)
