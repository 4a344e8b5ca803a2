"""A model in TensorFlow Lite Micro: what is measured is what its interpreter says, and every way to fail is a reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.tools import flatbuffer_utils
from target_models import (
    ask_tflm,
    classifier,
    constant,
    deep_classifier,
    features,
    float_classifier,
    float_ended_classifier,
    model,
    needs_tools,
    top_k,
)
from tiny_flatbuffers import Op, Tensor

from tfx_edge.litert import inspect
from tfx_edge.litert.targets import check, side
from tfx_edge.litert.targets.parity import breaches, differences
from tfx_edge.schemas import TensorSpec
from tfx_edge.schemas.target import Target

TFLM = Target(profile="tflm")


@needs_tools
@pytest.mark.parametrize("make", [classifier, float_classifier])
def test_the_arena_is_the_smallest_that_the_interpreter_runs_in_and_its_use_what_it_prints(make, tmp_path: Path) -> None:
    report = check(make(), TFLM, features())
    assert report.reasons == ()
    arena, used = (int(report.measurements[name]) for name in ("arena_bytes", "arena_used_bytes"))
    assert ask_tflm(tmp_path, make(), 1 << 20) == used
    assert ask_tflm(tmp_path, make(), arena) == used
    assert ask_tflm(tmp_path, make(), used - 16) is None
    if arena > used:
        assert ask_tflm(tmp_path, make(), arena - 16) is None


@needs_tools
def test_an_arena_budget_passes_at_what_is_needed_and_fails_a_byte_below() -> None:
    arena = int(check(classifier(), TFLM, features()).measurements["arena_bytes"])
    assert check(classifier(), Target(profile="tflm", max_arena_bytes=arena), features()).reasons == ()
    report = check(classifier(), Target(profile="tflm", max_arena_bytes=arena - 1), features())
    assert report.reasons == (f"tflm: arena_bytes {arena}, max_arena_bytes is {arena - 1}",)


@needs_tools
@pytest.mark.parametrize("make", [classifier, float_ended_classifier])
def test_a_small_quantized_model_predicts_within_a_step_of_what_is_evaluated(make) -> None:
    assert check(make(), Target(profile="tflm", max_parity_steps=1), features()).reasons == ()


@needs_tools
def test_a_deep_quantized_model_is_further_off_and_its_bounds_hold_what_is_measured() -> None:
    report = check(deep_classifier(), TFLM, features())
    assert report.reasons == ()
    steps, error = (report.measurements[name] for name in ("parity_steps", "parity_error"))
    assert steps > 1 and error < 0.1
    assert check(deep_classifier(), Target(profile="tflm", max_parity_steps=steps, max_parity_error=error), features()).reasons == ()
    for bound in ({"max_parity_steps": steps - 1}, {"max_parity_error": error * 0.99}):
        (reason,) = check(deep_classifier(), Target(profile="tflm", **bound), features()).reasons
        assert reason.startswith("tflm: output 'y' is ") and f" from what the gate evaluates, {next(iter(bound))} is " in reason


@needs_tools
def test_a_float_model_is_measured_as_a_share_of_its_largest_output() -> None:
    measured = check(float_classifier(), TFLM, features()).measurements
    assert "parity_steps" not in measured
    assert measured["parity_error"] < 1e-5


@needs_tools
def test_the_same_check_gives_the_same_report() -> None:
    assert check(classifier(), TFLM, features()) == check(classifier(), TFLM, features())


@needs_tools
def test_a_model_of_any_batch_runs_an_example_at_a_time_and_one_of_a_fixed_batch_in_steps() -> None:
    one = check(classifier(None), TFLM, features())
    assert one.reasons == ()
    assert one.measurements == check(classifier(1), TFLM, features()).measurements
    many = check(classifier(64), TFLM, features(70))
    assert many.reasons == () and many.measurements["arena_bytes"] > one.measurements["arena_bytes"]
    assert check(classifier(64), TFLM, features(3)).reasons == ("tflm: 3 examples, where a step of the model takes 64; give it as many",)


@needs_tools
def test_inputs_go_to_their_places_by_name() -> None:
    b, a, y = (Tensor(name, "float32", (1, 3)) for name in "bay")
    flatbuffer = model((b, a), (y,), [Op("SUB", (a, b), (y,))])
    rng = np.random.default_rng(0)
    report = check(flatbuffer, TFLM, {"a": rng.normal(size=(9, 3)) * 5, "b": rng.normal(size=(9, 3))})
    assert report.reasons == ()
    assert report.measurements["parity_error"] < 1e-6


def filter_over_time(*, bias: bool) -> bytes:
    """A layer with a variable tensor, its state."""
    x, y, state = Tensor("x", "float32", (1, 3)), Tensor("y", "float32", (1, 2)), Tensor("state", "float32", (1, 8), variable=True)
    rng = np.random.default_rng(0)
    feature, time = (constant(n, rng.normal(size=shape), "float32") for n, shape in (("feature", (2, 3)), ("time", (2, 4))))
    options = schema.SVDFOptionsT()
    options.rank = 1
    shift = constant("bias", [0.5, -0.5], "float32") if bias else None
    return model((x,), (y,), [Op("SVDF", (x, feature, time, shift, state), (y,), options)])


@needs_tools
def test_a_layers_state_does_not_pass_from_one_example_to_the_next() -> None:
    report = check(filter_over_time(bias=True), TFLM, {"x": np.random.default_rng(1).normal(size=(9, 3))})
    assert report.reasons == ()
    assert report.measurements["parity_error"] < 1e-6


@needs_tools
def test_a_model_that_kills_the_interpreter_is_a_reason() -> None:
    # TensorFlow Lite Micro reads SVDF's bias though it is optional; LiteRT runs the model.
    report = check(filter_over_time(bias=False), TFLM, {"x": np.ones((2, 3), np.float32)})
    assert report.reasons == ("tflm: the model ended TensorFlow Lite Micro with SIGSEGV",)
    assert check(filter_over_time(bias=False), Target(profile="litert-cpu"), {"x": np.ones((2, 3), np.float32)}).reasons == ()


@needs_tools
def test_a_model_that_assigns_a_variable_runs_once(models: Any) -> None:
    import tensorflow as tf

    calls = tf.Variable(0.0)

    def function(x: tf.Tensor) -> dict[str, tf.Tensor]:
        calls.assign_add(1.0)
        return {"y": x + calls}

    converter = tf.lite.TFLiteConverter.from_saved_model(str(models.save("counter", function, {"x": ([1, 4], "float32")}, calls)))
    converter.experimental_enable_resource_variables = True
    report = check(converter.convert(), TFLM, {"x": np.ones((9, 4), np.float32)})
    assert report.reasons == ()
    assert report.measurements["parity_error"] < 1e-6


@needs_tools
def test_an_operator_that_it_lacks_is_named() -> None:
    report = check(top_k(), TFLM, features())
    assert report.reasons == ("tflm: TensorFlow Lite Micro has no operator TOPK_V2; replace the layer that uses it",)
    assert {op.operator: op.runs_on for op in report.ops} == {"FULLY_CONNECTED": "CPU", "SOFTMAX": "CPU", "TOPK_V2": "nowhere"}
    assert report.measurements == {}


@needs_tools
def test_a_model_that_takes_too_long_is_a_reason() -> None:
    (reason,) = check(classifier(), TFLM, features(), time_limit_s=0.01).reasons
    assert reason == "tflm: TensorFlow Lite Micro didn't finish within 0.01 s; raise the time limit if the model is large"


@needs_tools
def test_the_reports_tool_has_a_version() -> None:
    assert check(classifier(), TFLM, features()).tool.startswith("TensorFlow Lite Micro 0.")


def behind(flatbuffer: bytes) -> bytes:
    """The model with one weight behind the flatbuffer, as large ones are written."""
    parsed = inspect.parse(flatbuffer)
    data = max((b.data for b in parsed.buffers if b.data is not None), key=len)
    (buffer,) = (b for b in parsed.buffers if b.data is data)
    buffer.data, buffer.offset, buffer.size = None, 2, len(data)
    end = len(flatbuffer_utils.convert_object_to_bytearray(parsed))
    buffer.offset = end
    packed = bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))
    return packed + bytes(data)


def open_sized() -> bytes:
    x, y = (Tensor(name, "float32", (None, None)) for name in "xy")
    return model((x,), (y,), [Op("ABS", (x,), (y,))])


@needs_tools
@pytest.mark.parametrize(
    ("flatbuffer", "given", "reason"),
    [
        (behind(classifier()), features(), "weights lie behind the flatbuffer, where TensorFlow Lite Micro doesn't look; "),
        (open_sized(), features(), "'x_tensor' has the open shape [-1, -1], but TensorFlow Lite Micro lays out memory once; "),
        (classifier(), {"z": features()["x"]}, "the examples: no feature 'x', which the model takes; there are 'z'; "),
        (classifier(), features(0), "0 examples, where a step of the model takes 1; "),
        (classifier()[:900], features(), "a damaged LiteRT flatbuffer (900 bytes): "),
        (b"PK", features(), "not a LiteRT flatbuffer (2 bytes, no TFL3 identifier); "),
    ],
)
def test_what_cannot_run_is_told_in_one_line(flatbuffer: bytes, given, reason: str) -> None:
    report = check(flatbuffer, TFLM, given)
    assert len(report.reasons) == 1
    assert report.reasons[0].startswith(f"tflm: {reason}") and "\n" not in report.reasons[0]


def test_where_the_tool_is_missing_the_reason_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for python in ("/no/such/python", "/bin/true"):
        monkeypatch.setenv(side.VARIABLE, python)
        (reason,) = check(classifier(), Target(profile="tflm", max_arena_bytes=1), features()).reasons
        assert reason == (
            "tflm: tflite-micro isn't installed; pip install 'tfx-edge[targets]' in an environment of its own and name its Python in "
            "TFX_EDGE_TARGETS_PYTHON"
        )


OUTPUT = TensorSpec(name="y", shape=(1, 4), dtype="float32")


@pytest.mark.parametrize("steps", range(5))
def test_an_output_that_is_more_steps_off_than_allowed_is_a_reason(steps: int) -> None:
    evaluated = np.random.default_rng(steps).integers(-100, 100, (6, 1, 4)) * np.float32(0.3)
    got = evaluated.copy()
    got[4, 0, 2] += np.float32(0.3) * steps
    found = differences(0.3, got, evaluated)
    assert found["parity_steps"] == pytest.approx(steps, abs=0.01)
    assert found["parity_error"] == pytest.approx(steps * 0.3 / np.abs(evaluated).max(), abs=1e-6)
    for allowed in range(5):
        told = list(breaches(OUTPUT, found, Target(profile="tflm", max_parity_steps=allowed + 0.01)))
        assert bool(told) is (steps > allowed)


@pytest.mark.parametrize(("step", "bound"), [(None, 1e-4), (0.01, 0.25)])
def test_where_the_target_names_no_bound_float_outputs_have_a_close_one_and_quantized_a_wide_one(step: float | None, bound: float) -> None:
    evaluated = np.array([[1.0, -4.0, 2.0]])
    for share, told in ((0.99, 0), (1.01, 1)):
        found = differences(step, evaluated + 4 * bound * share, evaluated)
        assert len(list(breaches(OUTPUT, found, TFLM))) == told
    loose = Target(profile="tflm", max_parity_error=bound * 1.02)
    assert list(breaches(OUTPUT, differences(step, evaluated + 4 * bound * 1.01, evaluated), loose)) == []


def test_a_bound_in_steps_on_a_float_output_cannot_be_measured() -> None:
    found = differences(None, np.ones(3), np.ones(3))
    assert list(breaches(OUTPUT, found, Target(profile="tflm", max_parity_steps=1))) == [
        "output 'y' is float, so max_parity_steps 1 can't be measured; give max_parity_error"
    ]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_output_that_is_no_number_is_a_reason(value: float) -> None:
    found = differences(None, np.ones(3) * value, np.ones(3))
    assert list(breaches(OUTPUT, found, TFLM)) == ["output 'y' is NaN or infinite; the device would predict nothing"]
