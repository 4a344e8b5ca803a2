"""Flatbuffers measured on the examples of the accuracy search, by Keras' metrics."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from chain_models import benign, chain, outlier

from tfx_edge.components.quantizer.evaluation import make_evaluator
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search import Maker, search
from tfx_edge.schemas import AccuracyTarget, EdgeError, QuantizationConfig, Threshold

MODEL = chain([benign("a", 1), *outlier(("up", "down"), 3), benign("b", 2)])
CLASSES = MODEL.outputs.argmax(axis=1)
LABELS = np.where(np.arange(300) % 10 == 0, (CLASSES + 1) % 12, CLASSES)  # nine in ten are right
DATASET = tf.data.Dataset.from_tensor_slices((MODEL.features, LABELS))
INT8 = QuantizationConfig(scheme="int8")


def target(metric: str = "SparseCategoricalAccuracy", max_drop: float = 0.01, **fields: Any) -> AccuracyTarget:
    return AccuracyTarget(threshold=Threshold(metric=metric, max_drop=max_drop), label_key="y", **{"split": "validation", **fields})


def int8_model() -> bytes:
    return Maker(MODEL.flatbuffer, RangeCollector(MODEL.flatbuffer)(MODEL.features))(INT8)


@pytest.mark.parametrize("examples", [None, 299, 256, 1, 1000])
def test_the_metric_is_over_the_first_examples(examples: int | None) -> None:
    candidate = int8_model()
    measured = make_evaluator(MODEL.flatbuffer, DATASET, target(examples=examples))(candidate)
    [scores] = Runner(candidate)(MODEL.features).values()
    assert measured.metric == pytest.approx(np.mean((scores.argmax(1) == LABELS)[:examples]))
    assert make_evaluator(MODEL.flatbuffer, DATASET, target())(MODEL.flatbuffer).metric == pytest.approx(0.9)


def test_a_second_measurement_knows_nothing_of_the_first() -> None:
    evaluate = make_evaluator(MODEL.flatbuffer, DATASET, target())
    first = evaluate(int8_model())
    evaluate(MODEL.flatbuffer)
    assert evaluate(int8_model()) == first


def test_noise_is_of_the_outputs_against_the_float_models() -> None:
    evaluate = make_evaluator(MODEL.flatbuffer, DATASET, target())
    assert evaluate(MODEL.flatbuffer).noise == 0
    candidate = int8_model()
    [expected], [found] = (Runner(model)(MODEL.features).values() for model in (MODEL.flatbuffer, candidate))
    assert evaluate(candidate).noise == pytest.approx(np.sum((found - expected) ** 2) / np.sum(expected**2), rel=1e-4)


def test_a_search_by_accuracy_leaves_those_operators_in_float_that_int8_ruins() -> None:
    wanted = target(max_drop=0.05, escalation=("mixed",))
    ranges = RangeCollector(MODEL.flatbuffer)(MODEL.features)
    evaluate = make_evaluator(MODEL.flatbuffer, DATASET, wanted)
    result = search(MODEL.flatbuffer, INT8, wanted, Maker(MODEL.flatbuffer, ranges), evaluate)
    assert result.met and result.float_metric == pytest.approx(0.9)
    assert len(result.config.rules) == 2
    assert all(name in str(result.config.rules) for name in ("up_tensor", "down_tensor"))


@pytest.mark.parametrize(
    ("dataset", "wanted", "text"),
    [
        (DATASET, {"metric": "MyAccuracy"}, "Keras has none of this name"),
        (DATASET, {"metric": "IoU"}, "give what Keras' class takes"),
        (DATASET.take(0), {"split": "none"}, "accuracy_target.split 'none' has no examples"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_the_search(dataset: tf.data.Dataset, wanted: dict[str, str], text: str) -> None:
    with pytest.raises(EdgeError, match=text):
        make_evaluator(MODEL.flatbuffer, dataset, target(**wanted))


def test_an_output_that_the_model_does_not_have_is_refused() -> None:
    threshold = Threshold(metric="SparseCategoricalAccuracy", output="digit", max_drop=0.01)
    with pytest.raises(EdgeError, match="threshold.output 'digit': the model's outputs are b"):
        make_evaluator(MODEL.flatbuffer, DATASET, AccuracyTarget(threshold=threshold, label_key="y", split="eval"))


def test_labels_that_the_metric_does_not_take_are_an_error_that_names_both() -> None:
    dataset = tf.data.Dataset.from_tensor_slices((MODEL.features, np.zeros((300, 5), np.float32)))
    with pytest.raises(EdgeError, match="takes no labels float32"):
        make_evaluator(MODEL.flatbuffer, dataset, target("MeanAbsoluteError"))(MODEL.flatbuffer)


def test_predictions_that_are_no_numbers_are_an_error() -> None:
    features = {"x": np.full_like(MODEL.features["x"], np.nan)}
    with pytest.raises(EdgeError, match="takes NaN or Inf"):
        make_evaluator(MODEL.flatbuffer, tf.data.Dataset.from_tensor_slices((features, LABELS)), target())
