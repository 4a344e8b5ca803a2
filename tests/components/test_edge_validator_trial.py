from types import SimpleNamespace

import gate_data
import numpy as np
import pytest

from tfx_edge.components.edge_validator.trial import TrialFailure, try_model
from tfx_edge.litert import child


@pytest.fixture(scope="module")
def models() -> SimpleNamespace:
    data = gate_data.examples(50)
    keras_model = gate_data.train(data)
    return SimpleNamespace(
        data=data, keras=keras_model, float32=gate_data.flatbuffer(keras_model), int8=gate_data.int8_flatbuffer(keras_model, data["x"])
    )


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_a_sound_model_has_no_fault(models: SimpleNamespace, kind: str) -> None:
    assert try_model(getattr(models, kind), models.data, 60) is None


def test_features_may_have_any_name_and_hold_bytes(models: SimpleNamespace) -> None:
    features = {"file": np.array([b"a", b"", b"ccc"], object), "x": models.data["x"][:3], "allow_pickle": np.arange(3)}
    assert try_model(models.float32, features, 60) is None


def test_the_fault_of_a_model_that_does_not_fit_the_features_is_told(models: SimpleNamespace) -> None:
    fault = try_model(models.float32, {"y": models.data["x"]}, 60)
    assert fault is not None and "no feature 'x'" in fault
    fault = try_model(models.float32, {"x": models.data["x"][:, :3]}, 60)
    assert fault is not None and "feature 'x'" in fault


@pytest.mark.parametrize(
    "damage", [lambda m: b"", lambda m: b"no flatbuffer at all", lambda m: m[:300], lambda m: m[:-900], lambda m: m[:8] + bytes(len(m) - 8)]
)
def test_every_damage_has_a_fault_of_one_line(models: SimpleNamespace, damage: object) -> None:
    fault = try_model(damage(models.float32), models.data, 60)
    assert fault and "\n" not in fault


def test_what_kills_the_interpreter_is_a_fault_that_says_what_it_was_doing(models: SimpleNamespace) -> None:
    assert try_model(gate_data.killing(models.keras), models.data, 60) == (
        "loading it killed the process with SIGSEGV; the flatbuffer is damaged, or memory ran out"
    )


def test_too_little_time_is_a_fault(models: SimpleNamespace) -> None:
    fault = try_model(models.float32, models.data, 0.05)
    assert fault is not None and "starting the process didn't finish within 0.05 s" in fault


def test_a_process_that_cannot_start_is_not_held_against_the_model(models: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child.sys, "executable", "/bin/false")
    with pytest.raises(TrialFailure, match="status 1"):
        try_model(models.float32, models.data, 60)


@pytest.mark.parametrize(("needs", "passes"), [(b"1.5.0", True), (b"2.3.0", True), (b"2.21.0", True), (b"2.99.0", False), (b"10.0", False)])
def test_versions_of_the_runtime_compare_as_versions(models: SimpleNamespace, needs: bytes, passes: bool) -> None:
    fault = try_model(gate_data.needing_runtime(models.float32, needs), models.data, 60)
    assert (fault is None) == passes, fault
    assert passes or f"TensorFlow Lite {needs.decode()}," in str(fault)
