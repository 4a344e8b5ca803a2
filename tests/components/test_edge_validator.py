import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gate_data
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from ai_edge_litert.interpreter import Interpreter
from gate_data import pushed, refused
from tfx.components.evaluator import constants

from tfx_edge.components.edge_validator import gate as gate_module
from tfx_edge.components.edge_validator import model_pair
from tfx_edge.litert.inspect import gzip_size
from tfx_edge.schemas import Budget, EdgeError, GateConfig, Slice, Threshold

ACCURACY = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02)
SLICES = (
    Slice(feature_keys=("group",)),
    Slice(feature_values={"city": "oslo"}),
    Slice(feature_keys=("city",), feature_values={"group": "0"}),
)


def config(*thresholds: Threshold, **fields: Any) -> GateConfig:
    return GateConfig(label_key="label", thresholds=thresholds or (ACCURACY,), **{"layer_examples": 0, **fields})


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The float model as a Trainer saves it, and its flatbuffers."""
    keras_model = gate_data.train(gate_data.examples(3000, seed=1))
    trainer = tmp_path_factory.mktemp("trainer")
    keras_model.save(trainer / "Format-Serving")
    data = gate_data.examples()
    return SimpleNamespace(
        keras=keras_model,
        baseline=str(trainer),
        data=data,
        float32=gate_data.flatbuffer(keras_model),
        int8=gate_data.int8_flatbuffer(keras_model, data["x"] / 2),  # calibrated on half the range, so that inputs must saturate
    )


@pytest.fixture(scope="module")
def gate(models: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., SimpleNamespace]:
    def run(**changes: Any) -> SimpleNamespace:
        arguments = {"model": models.float32, "baseline": models.baseline, "data": models.data, "config": config(), **changes}
        return gate_data.run_gate(tmp_path_factory.mktemp("gate"), **arguments)

    return run


@pytest.fixture(scope="module")
def good(gate: Callable[..., SimpleNamespace], models: SimpleNamespace) -> SimpleNamespace:
    """An int8 model that keeps every bound, with a second metric on a slice of its own."""
    loads: list[str] = []
    load, try_model = model_pair.load_baseline, model_pair.try_model
    with pytest.MonkeyPatch.context() as patch:  # they run as they are, and are counted
        patch.setattr(model_pair, "load_baseline", lambda *a: (loads.append("baseline"), load(*a))[1])
        patch.setattr(model_pair, "try_model", lambda *a: (loads.append("candidate"), try_model(*a))[1])
        result = gate(
            model=models.int8,
            config=config(
                Threshold(metric="SparseCategoricalAccuracy", max_drop=0.1, lower_bound=0.5),
                Threshold(
                    metric="SparseCategoricalCrossentropy", max_drop=0.3, higher_is_better=False, slices=(Slice(feature_keys=("label",)),)
                ),
                slices=SLICES,
                batch_size=64,
            ),
        )
    return SimpleNamespace(**vars(result), loads=loads)


def plain_loop(model: bytes, x: np.ndarray) -> np.ndarray:
    """One row at a time through LiteRT: the independent reference."""
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    (source,), (target,) = interpreter.get_input_details(), interpreter.get_output_details()
    rows = []
    for row in x:
        if source["dtype"] == np.int8:
            scale, zero = source["quantization"]
            row = np.array([min(127, max(-128, round(float(v) / scale + zero))) for v in row])
        interpreter.set_tensor(source["index"], row[None].astype(source["dtype"]))
        interpreter.invoke()
        out = interpreter.get_tensor(target["index"])[0]
        if target["dtype"] == np.int8:
            scale, zero = target["quantization"]
            out = (out.astype(np.float64) - zero) * scale
        rows.append(out)
    return np.array(rows)


def slice_masks(data: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    group, city = data["group"], data["city"]
    yield "Overall", np.ones(len(group), bool)
    yield "city=oslo", city == b"oslo"
    for g in range(4):
        yield f"group={g}", group == g
    for name in gate_data.CITIES:
        yield f"city={name.decode()}, group=0", (city == name) & (group == 0)
    for label in range(3):
        yield f"label={label}", data["label"] == label


def test_a_good_model_is_blessed_and_pushed(good: SimpleNamespace) -> None:
    assert good.report.blessed and good.report.reasons == ()
    assert good.files == ["BLESSED"]
    assert pushed(good) == ["tflite"]


def test_the_blessing_has_the_properties_and_files_of_tfxs_evaluator(good: SimpleNamespace) -> None:
    blessing = good.blessing
    assert blessing.get_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY) == constants.BLESSED_VALUE
    assert blessing.get_string_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_URI_KEY) == good.model.uri
    assert blessing.get_int_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY) == good.model.id == 5
    assert blessing.get_string_custom_property(constants.ARTIFACT_PROPERTY_BASELINE_MODEL_URI_KEY) == good.baseline.uri
    assert blessing.get_int_custom_property(constants.ARTIFACT_PROPERTY_BASELINE_MODEL_ID_KEY) == good.baseline.id == 7
    assert blessing.get_string_custom_property("component_id") == "EdgeValidator"
    assert good.files == [constants.BLESSED_FILE_NAME]


def test_accuracies_equal_a_plain_loop_overall_and_in_every_slice(good: SimpleNamespace, models: SimpleNamespace) -> None:
    hits = {
        "baseline": models.keras.predict(models.data["x"], verbose=0).argmax(axis=1) == models.data["label"],
        "candidate": plain_loop(models.int8, models.data["x"]).argmax(axis=1) == models.data["label"],
    }
    assert (hits["baseline"] != hits["candidate"]).any(), "the models agree everywhere, so the test can't tell them apart"
    rows = {row.slice: row for row in good.report.metrics if row.metric == "SparseCategoricalAccuracy"}
    masks = dict(slice_masks(models.data))
    assert set(rows) == set(masks)
    for name, mask in masks.items():
        row, n = rows[name], int(mask.sum())
        assert row.examples == n
        for model, hit in hits.items():
            assert getattr(row, model) * n == pytest.approx(hit[mask].sum(), abs=1e-3), (name, model)
        assert row.difference == pytest.approx((hits["candidate"][mask].sum() - hits["baseline"][mask].sum()) / n, abs=1e-6)


def test_losses_equal_a_plain_loop(good: SimpleNamespace, models: SimpleNamespace) -> None:
    predictions = {"baseline": models.keras.predict(models.data["x"], verbose=0), "candidate": plain_loop(models.int8, models.data["x"])}
    rows = {row.slice: row for row in good.report.metrics if row.metric == "SparseCategoricalCrossentropy"}
    for name, mask in slice_masks(models.data):
        for model, p in predictions.items():
            p = np.clip(p / p.sum(axis=1, keepdims=True), 1e-7, 1 - 1e-7)  # as Keras does
            expected = -np.log(p[mask, models.data["label"][mask]]).mean()
            assert getattr(rows[name], model) == pytest.approx(expected, rel=1e-4), (name, model)


def test_both_models_are_loaded_once_for_all_batches(good: SimpleNamespace) -> None:
    assert sorted(good.loads) == ["baseline", "candidate"]


def test_tfma_reads_the_evaluation(good: SimpleNamespace) -> None:
    assert tfma.load_validation_result(str(good.evaluation)).validation_ok
    overall = {r.slice: r for r in good.report.metrics}["Overall"]
    for model in ("baseline", "candidate"):
        result = tfma.load_eval_result(str(good.evaluation), model_name=model)
        metrics = dict(result.slicing_metrics)[()][""][""]
        assert metrics["example_count"]["doubleValue"] == gate_data.EXAMPLES
        assert metrics["sparse_categorical_crossentropy"]["doubleValue"] == pytest.approx(getattr(overall, model))


def test_the_report_has_the_sizes_and_the_runtime(good: SimpleNamespace, models: SimpleNamespace) -> None:
    assert good.report.size_bytes == len(models.int8)
    assert good.report.gzip_bytes == gzip_size(models.int8)
    assert good.report.runtime.startswith("LiteRT ")


def test_shuffled_weights_are_refused(gate: Callable[..., SimpleNamespace], models: SimpleNamespace) -> None:
    text = refused(gate(model=gate_data.shuffled_weights(models.int8)))
    assert "SparseCategoricalAccuracy, slice Overall (400 examples)" in text
    assert "max_drop 0.02" in text


def test_a_loss_in_one_slice_is_refused_though_overall_it_passes(
    gate: Callable[..., SimpleNamespace], models: SimpleNamespace, tmp_path: Path
) -> None:
    data, keras = models.data, models.keras
    hit = keras.predict(data["x"], verbose=0).argmax(axis=1) == data["label"]
    wrong = (keras.predict(data["x"], verbose=0).argmax(axis=1) + 1) % 3 == data["label"]
    lost = {g: int(hit[data["group"] == g].sum() - wrong[data["group"] == g].sum()) for g in (2, 3)}
    examples = {g: int((data["group"] == g).sum()) for g in (2, 3)}
    third, second = (Slice(feature_values={"group": str(g)}) for g in (3, 2))
    breaking = gate_data.flatbuffer(keras, gate_data.breaking((2, 3)), x=(4,), group=())
    gate_data.saved_model_of_x_and_group(tmp_path / "Format-Serving", keras)
    result = gate(
        model=breaking,
        baseline=str(tmp_path),
        config=config(
            Threshold(metric="SparseCategoricalAccuracy", max_drop=0.5),
            Threshold(metric="SparseCategoricalAccuracy", max_drop=lost[2] / examples[2], slices=(second,)),
            Threshold(metric="SparseCategoricalAccuracy", max_drop=(lost[3] - 1) / examples[3], slices=(third,)),
        ),
    )
    refused(result)
    (reason,) = result.report.reasons  # group 2 loses exactly what it may, group 3 one example more, overall far less
    for part in ("SparseCategoricalAccuracy", "group=3", f"{examples[3]} examples", f"difference {-lost[3] / examples[3]:.4f}", "max_drop"):
        assert part in reason
    validation = tfma.load_validation_result(str(result.evaluation))
    assert [len(s.failures) for s in validation.metric_validations_per_slice] == [1], "TFMA must come to the same verdict"


def test_without_our_own_reasons_tfmas_verdict_and_count_still_refuse(
    gate: Callable[..., SimpleNamespace], models: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate, one_more = gate_module.evaluate, lambda evaluated: dataclasses.replace(evaluated, examples=evaluated.examples + 1)
    monkeypatch.setattr(gate_module, "reasons", lambda *_: [])
    monkeypatch.setattr(gate_module, "evaluate", lambda *a: one_more(evaluate(*a)))
    text = refused(gate(model=gate_data.shuffled_weights(models.float32), data=gate_data.examples(100)))
    assert "TFMA's validation: sparse_categorical_accuracy, slice Overall" in text
    assert "TFMA evaluated 100 of 101 examples" in text


def test_everything_that_can_be_told_from_one_evaluation_is_told(gate: Callable[..., SimpleNamespace], models: SimpleNamespace) -> None:
    always_the_same = gate_data.flatbuffer(models.keras, lambda model, x: 0 * model(x) + 1 / 3)
    correlation, flips = (
        Threshold(metric="SquaredPearsonCorrelation", max_drop=1.0, higher_is_better=True),
        Threshold(metric="SymmetricFlipRate", upper_bound=0.0),
    )
    slices = (Slice(feature_keys=("group",)), Slice(feature_values={"group": "9"}), Slice(feature_keys=("hour",)))
    result = gate(
        model=always_the_same,
        config=config(ACCURACY, correlation, flips, slices=slices, min_examples=60, budget=Budget(max_bytes=1000, max_gzip_bytes=500)),
    )
    text = refused(result)
    size, gzip_bytes, small = len(always_the_same), gzip_size(always_the_same), int((models.data["group"] == 3).sum())
    assert f"size: the flatbuffer has {size} bytes, {size - 1000} more than max_bytes 1000" in text
    assert f"size: gzip -9 has {gzip_bytes} bytes, {gzip_bytes - 500} more than max_gzip_bytes 500" in text
    assert f"slice group=3: {small} examples, fewer than min_examples 60" in text
    assert "slice group=9: no example is in it" in text
    assert "slice hour: no feature 'hour' in the examples" in text
    assert "SparseCategoricalAccuracy, slice group=0" in text
    assert "the value of the candidate is nan" in text
    assert "SymmetricFlipRate, slice Overall (400 examples): candidate 0." in text and "at most upper_bound 0" in text
    assert result.report.metrics, "what could be measured is in the report"


UNUSABLE: dict[str, tuple[Callable[[SimpleNamespace], bytes], str]] = {
    "truncated": (lambda m: m.float32[: len(m.float32) // 2], "candidate: a damaged LiteRT flatbuffer"),
    "mixes the rows of a batch": (
        lambda m: gate_data.flatbuffer(m.keras, lambda model, x: model(x - tf.reduce_mean(x, axis=0, keepdims=True))),
        "candidate: output 'probabilities' of an example depends on the others in its batch",
    ),
    "kills the interpreter": (lambda m: gate_data.killing(m.keras), "candidate: loading it killed the process with SIGSEGV"),
    "needs a newer runtime": (
        lambda m: gate_data.needing_runtime(m.float32, b"99.1.0"),
        "candidate: it needs the runtime of TensorFlow Lite 99.1.0",
    ),
    "input without feature": (
        lambda m: gate_data.flatbuffer(m.keras, lambda model, z: model(z), z=(4,)),
        "candidate: the examples: no feature 'z'",
    ),
    "predicts NaN": (
        lambda m: gate_data.flatbuffer(m.keras, lambda model, x: model(x) * tf.math.log(x[:, :1] + 2)),
        "candidate: output 'probabilities' is NaN or infinite for",
    ),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_candidate_is_refused(case: str, gate: Callable[..., SimpleNamespace], models: SimpleNamespace) -> None:
    damage, reason = UNUSABLE[case]
    result = gate(model=damage(models))
    assert reason in refused(result)
    assert list(result.evaluation.iterdir()) == [], "an evaluation that broke off must not look like one"
    assert result.report.metrics == ()


def test_examples_without_weight_are_too_few(gate: Callable[..., SimpleNamespace], models: SimpleNamespace) -> None:
    weight = (np.arange(400) % 40 == 0).astype(np.float32)
    result = gate(
        model=gate_data.shuffled_weights(models.float32), data={**models.data, "w": weight}, config=config(example_weight_key="w")
    )
    assert "slice Overall: 10 examples of 400 with a weight, fewer than min_examples 20" in refused(result)


def test_a_candidate_that_never_comes_back_is_refused(gate: Callable[..., SimpleNamespace], models: SimpleNamespace) -> None:
    endless = gate_data.flatbuffer(
        models.keras, lambda model, x: tf.while_loop(lambda y: tf.reduce_sum(y) > -1.0, lambda y: (y * 0.5,), (model(x),))[0]
    )
    assert "candidate: predicting 256 examples didn't finish within 4 s" in refused(gate(model=endless, config=config(time_limit_s=4.0)))


def test_a_baseline_that_predicts_infinity_is_a_refusal(
    gate: Callable[..., SimpleNamespace], models: SimpleNamespace, tmp_path: Path
) -> None:
    gate_data.saved_model(tmp_path / "Format-Serving", models.keras, lambda model, x: model(x) / tf.maximum(x[:, :1], 0.0))
    result = gate(baseline=str(tmp_path), with_transform_graph=False)
    assert "baseline: output 'probabilities' is NaN or infinite for" in refused(result)


@pytest.mark.parametrize("there", [True, False])
def test_a_baseline_that_is_missing_or_unloadable_is_a_refusal(there: bool, gate: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    text = refused(gate(baseline=str(tmp_path) if there else None))
    assert ("baseline: no SavedModel at" if there else "baseline: there is none") in text


def test_each_output_has_its_thresholds(gate: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    good, bad = tf.eye(3)[None], tf.roll(tf.eye(3), 1, axis=0)[None]
    two = {"right": good, "wrong": good}
    baseline = gate_data.saved_model(tmp_path / "Format-Serving", tf.Module(), lambda _, x: {k: x[:, :3] @ v[0] for k, v in two.items()})
    candidate = gate_data.flatbuffer(tf.Module(), lambda _, x: {"right": x[:, :3] @ good[0], "wrong": x[:, :3] @ bad[0]})
    data = gate_data.examples(120)
    thresholds = (ACCURACY.model_copy(update={"output": name}) for name in ("right", "wrong"))
    result = gate(model=candidate, baseline=str(Path(baseline).parent), data=data, config=config(*thresholds), with_transform_graph=False)
    refused(result)
    (reason,) = result.report.reasons
    assert "SparseCategoricalAccuracy of output 'wrong', slice Overall" in reason
    rows = {row.metric: row for row in result.report.metrics}
    right = (data["x"][:, :3].argmax(axis=1) == data["label"]).mean()
    assert rows["SparseCategoricalAccuracy of output 'right'"].candidate == pytest.approx(right, abs=1e-6)
    assert rows["SparseCategoricalAccuracy of output 'wrong'"].baseline == pytest.approx(right, abs=1e-6)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no such split": ({"config": config(split="test")}, "split 'test': not in the examples"),
    "no such weight": ({"config": config(example_weight_key="wait")}, "example_weight_key 'wait': no such feature"),
    "a negative weight": (
        {"config": config(example_weight_key="w"), "data": {**gate_data.examples(), "w": np.linspace(-1, 1, 400, dtype=np.float32)}},
        "example_weight_key: its feature holds the weight -1.0",
    ),
    "one-hot metric on class numbers": (
        {"config": config(Threshold(metric="CategoricalAccuracy", max_drop=0.5))},
        "'CategoricalAccuracy' compares each of the output's 3 values with its label",
    ),
    "a class that isn't there": (
        {"config": config(Threshold(metric="AUC", class_id=9, max_drop=0.5))},
        "the output has the classes 0 to 2",
    ),
    "a slice by NaN": (
        {
            "config": config(slices=(Slice(feature_keys=("f",)),)),
            "data": {**gate_data.examples(), "f": np.full(400, np.nan, np.float32)},
        },
        "slices by 'f': the feature is NaN in an example",
    ),
    "no such label": ({"config": GateConfig(label_key="lable", thresholds=(ACCURACY,))}, "label 'lable': no such feature"),
    "no such metric": ({"config": config(Threshold(metric="Accurracy", lower_bound=0))}, "did you mean 'Accuracy'?"),
    "not a number": (
        {"config": config(Threshold(metric="Precision", config={"thresholds": [0.4, 0.5]}, lower_bound=0))},
        "thresholds on Precision: one of these gives no single number",
    ),
    "empty split": ({"data": {name: a[:0] for name, a in gate_data.examples().items()}}, "split 'eval': no examples"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_users_mistake_is_an_error_and_blesses_nothing(
    case: str, gate: Callable[..., SimpleNamespace], tmp_path_factory: pytest.TempPathFactory
) -> None:
    changes, message = MISTAKES[case]
    with pytest.raises(EdgeError, match=r"^[^\n]*$") as error:
        gate(**changes)
    assert message in str(error.value)
    latest = max(tmp_path_factory.getbasetemp().glob("gate*"), key=lambda p: p.stat().st_mtime)
    assert [p for name in ("blessing", "report", "evaluation") for p in (latest / name).glob("*")] == []


def test_an_example_without_a_feature_is_a_users_mistake(gate: Callable[..., SimpleNamespace], models: SimpleNamespace) -> None:
    ragged = {**models.data, "x": np.array([*models.data["x"][:-1], models.data["x"][-1][:2]], object)}
    with pytest.raises(EdgeError, match="feature 'x' has 2 values in an example, the schema says 4"):
        gate(data=ragged, schema_of=models.data)
