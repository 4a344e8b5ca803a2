import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import gate_data
import numpy as np
import pytest
import tensorflow as tf

from tfx_edge.components.edge_validator.model_pair import ModelFault, ModelPair, Models
from tfx_edge.schemas import EdgeError


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    data = gate_data.examples(50)
    keras_model = gate_data.train(data)
    baseline = tmp_path_factory.mktemp("baseline")
    keras_model.save(baseline)
    return SimpleNamespace(data=data, keras=keras_model, baseline=str(baseline), float32=gate_data.flatbuffer(keras_model))


def pair(
    models: SimpleNamespace,
    tmp_path: Path,
    candidate: bytes | None = None,
    baseline: str | None = None,
    outputs: Sequence[str | None] = (None,),
) -> ModelPair:
    (tmp_path / "tflite").write_bytes(candidate or models.float32)
    return ModelPair(Models(str(tmp_path / "tflite"), baseline or models.baseline, outputs=tuple(outputs), time_limit_s=60))


def test_predictions_are_those_of_each_model(models: SimpleNamespace, tmp_path: Path) -> None:
    half = gate_data.flatbuffer(models.keras, lambda model, x: model(x) / 2)
    predictions = pair(models, tmp_path, half).predict(models.data)
    expected = models.keras.predict(models.data["x"], verbose=0)
    np.testing.assert_allclose(predictions["baseline"], expected, rtol=1e-5)
    np.testing.assert_allclose(predictions["candidate"], expected / 2, rtol=1e-5)


def test_batches_of_any_size_from_several_threads_get_their_own_predictions(models: SimpleNamespace, tmp_path: Path) -> None:
    both = pair(models, tmp_path)
    expected = models.keras.predict(models.data["x"], verbose=0)
    starts = [i % 40 for i in range(200)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda i: both.predict({"x": models.data["x"][i : i + 1 + i % 9]})["candidate"], starts))
    for i, predictions in zip(starts, found, strict=True):
        np.testing.assert_allclose(predictions, expected[i : i + 1 + i % 9], rtol=1e-4)


def test_another_number_of_classes_is_the_candidates_fault(models: SimpleNamespace, tmp_path: Path) -> None:
    two_classes = gate_data.flatbuffer(models.keras, lambda model, x: model(x)[:, :2])
    with pytest.raises(ModelFault, match=r"candidate: output 'probabilities' has shape \(50, 2\), the baseline's \(50, 3\)"):
        pair(models, tmp_path, two_classes).predict(models.data)


def test_other_outputs_are_the_candidates_fault(models: SimpleNamespace, tmp_path: Path) -> None:
    more = gate_data.flatbuffer(models.keras, lambda model, x: {"probabilities": model(x), "logits": model(x) + 1})
    with pytest.raises(ModelFault, match="candidate: its outputs are logits, probabilities, the baseline's probabilities"):
        pair(models, tmp_path, more).predict(models.data)


@pytest.mark.parametrize(("outputs", "named", "message"), [
    (("only",), ("only",), "threshold on output 'only': the model has one output"),
    (("left", "right"), (None,), "threshold without an output: the model has the outputs left, right"),
    (("left", "right"), ("left", "middle"), "threshold on output 'middle': the model has the outputs left, right"),
])  # fmt: skip
def test_a_threshold_on_no_output_of_the_model_is_a_users_mistake(
    outputs: tuple[str, ...], named: tuple[str | None, ...], message: str, models: SimpleNamespace, tmp_path: Path
) -> None:
    baseline = gate_data.saved_model(tmp_path / "outputs", models.keras, lambda model, x: {name: model(x) for name in outputs})
    with pytest.raises(EdgeError, match=message) as error:
        pair(models, tmp_path, baseline=baseline, outputs=named)
    assert not isinstance(error.value, ModelFault)


def test_what_a_baseline_raises_is_its_fault(models: SimpleNamespace, tmp_path: Path) -> None:
    def picky(model: tf.Module, x: tf.Tensor) -> tf.Tensor:
        tf.debugging.assert_less(x, 2.0, message="x too large")
        return model(x)

    baseline = gate_data.saved_model(tmp_path / "picky", models.keras, picky)
    with pytest.raises(ModelFault, match=r"baseline: InvalidArgumentError: .*x too large"):
        pair(models, tmp_path, baseline=baseline).predict({"x": models.data["x"] + 3})


def test_running_out_of_memory_is_nobodys_fault(models: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = pair(models, tmp_path)

    def exhausted(*_: object) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "out of memory")

    monkeypatch.setattr(both, "_baseline", dataclasses.replace(both._baseline, predict=exhausted))
    with pytest.raises(tf.errors.ResourceExhaustedError):
        both.predict(models.data)


def test_a_candidate_that_reads_the_label_is_refused_however_well_it_predicts(models: SimpleNamespace, tmp_path: Path) -> None:
    cheat = gate_data.flatbuffer(models.keras, lambda model, label: tf.one_hot(tf.cast(label, tf.int32), 3), label=())
    with pytest.raises(ModelFault, match="candidate: its inputs are label, the baseline's x; export it from the baseline"):
        pair(models, tmp_path, cheat).predict({**models.data, "label": models.data["label"].astype(np.float32)})
