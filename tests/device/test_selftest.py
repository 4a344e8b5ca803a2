"""The self-test on golden vectors that the exporter's side wrote."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.device.selftest import FLATBUFFER, GOLDEN, SelfTestError, difference, main, selftest
from tfx_edge.litert.golden import golden_vectors
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.schemas import QuantizationConfig

KERNEL = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def dense(kernel=KERNEL, batch=None):
    x, y = Tensor("x", "float32", (batch, 4)), Tensor("y", "float32", (batch, 3))
    weights = Tensor("w", "float32", (3, 4), value=kernel)
    op = Op("FULLY_CONNECTED", (x, weights, None), (y,), schema.FullyConnectedOptionsT())
    return pack([Graph("serving_default", (x,), (y,), (op,))])


def int8():
    from tfx_edge.litert.plan import apply_plan, make_plan

    x = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    ranges = RangeCollector(dense())({"x": x})
    plan = make_plan(dense(), QuantizationConfig(scheme="int8", io_type="int8"), ranges, "d")
    return apply_plan(dense(), plan, ranges)


@pytest.mark.parametrize("model", [dense(), dense(batch=2), int8()], ids=["float", "fixed batch", "int8"])
def test_a_model_passes_its_own_golden_vectors_and_they_repeat(model):
    golden = golden_vectors(model)
    [compared] = selftest(model, golden)
    assert compared.passed and compared.difference == 0 and golden_vectors(model) == golden
    with np.load(io.BytesIO(golden)) as arrays:
        outputs = arrays["output:y"]
    assert len(outputs) == 8 and len(np.unique(outputs)) > 8


@pytest.mark.parametrize("changed", [KERNEL * 1.01, np.where(np.arange(12).reshape(3, 4) == 7, -KERNEL, KERNEL)], ids=["1 %", "one sign"])
def test_another_models_outputs_fail(changed):
    [compared] = selftest(dense(changed.astype(np.float32)), golden_vectors(dense()))
    assert not compared.passed and compared.difference > compared.tolerance > 0


def test_a_quantized_output_may_be_one_step_off_and_no_more():
    golden = golden_vectors(int8())
    with np.load(io.BytesIO(golden)) as read:
        arrays = dict(read)
    for steps, passes in ((1, True), (2, False)):
        changed = io.BytesIO()
        moved = arrays["output:y"] + np.where(arrays["output:y"] < 100, steps, -steps).astype(np.int8)
        np.savez(changed, **{**arrays, "output:y": moved})
        [compared] = selftest(int8(), changed.getvalue())
        assert compared.passed == passes and compared.difference == steps


def test_real_examples_become_the_inputs_and_made_up_ones_lie_in_the_calibrated_range():
    examples = {"x": np.arange(40, dtype=np.float32).reshape(10, 4), "unused": np.zeros(10)}
    with np.load(io.BytesIO(golden_vectors(dense(), examples=examples, runs=3))) as arrays:
        np.testing.assert_array_equal(arrays["input:x"][:, 0], examples["x"][:3])
        np.testing.assert_allclose(arrays["output:y"][:, 0], examples["x"][:3] @ KERNEL.T, rtol=1e-5)
    ranges = RangeCollector(dense())({"x": np.random.default_rng(2).uniform(100, 101, (50, 4)).astype(np.float32)})
    with np.load(io.BytesIO(golden_vectors(dense(), ranges=ranges))) as arrays:
        assert arrays["input:x"].min() >= 100 and arrays["input:x"].max() <= 101


def with_output(golden, change):
    with np.load(io.BytesIO(golden)) as read:
        arrays = dict(read)
    changed = io.BytesIO()
    np.savez(changed, **{**arrays, "output:y": change(arrays["output:y"])})
    return changed.getvalue()


def test_infinite_outputs_leave_the_finite_ones_a_tolerance_and_keep_their_places():
    x, zero, y = (Tensor(name, "float32", (None, 4)) for name in ("x", "zero", "y"))
    ops = (
        Op("RELU", (x,), (zero,)),
        Op("DIV", (Tensor("one", "float32", (1,), value=np.ones(1, np.float32)), zero), (y,), schema.DivOptionsT()),
    )
    model = pack([Graph("serving_default", (x,), (y,), ops)])
    golden = golden_vectors(model)
    with np.load(io.BytesIO(golden)) as arrays:
        assert np.isinf(arrays["output:y"]).any() and np.isfinite(arrays["output:y"]).any() and np.isfinite(arrays["tolerance:y"])
    assert selftest(model, golden)[0].passed
    for change in (
        lambda y: np.where(np.isinf(y), -y, y),
        lambda y: np.where(np.isinf(y), y, y * 1.01),
        lambda y: np.where(np.isinf(y), 0, y),
    ):
        assert not selftest(model, with_output(golden, change))[0].passed


def test_a_class_may_not_be_one_off():
    x, y = Tensor("x", "float32", (None, 4)), Tensor("y", "int64", (None,))
    op = Op("ARG_MAX", (x, Tensor("axis", "int32", (), value=np.int32(1))), (y,), schema.ArgMaxOptionsT())
    op.options.outputType = schema.TensorType.INT64
    model = pack([Graph("serving_default", (x,), (y,), (op,))])
    golden = golden_vectors(model)
    assert selftest(model, golden)[0].passed
    assert not selftest(model, with_output(golden, lambda y: y + 1))[0].passed


@pytest.mark.parametrize("golden", [b"", b"PK\x03\x04 no archive", golden_vectors(dense())[:-30]])
def test_golden_vectors_that_cannot_be_read_are_an_error_and_no_pass(golden):
    with pytest.raises(SelfTestError, match="golden.npz"):
        selftest(dense(), golden)


def test_a_difference_sees_nan_shape_and_type():
    nan = np.float32([1, np.nan])
    assert difference(nan, nan) == 0
    assert not difference(nan, np.float32([1, 2])) <= 1e9
    assert difference(np.zeros(2), np.zeros(3)) == difference(np.zeros(2, np.int8), np.zeros(2, np.float32)) == np.inf


@pytest.fixture
def bundle(tmp_path):
    for name, content in ((FLATBUFFER, dense()), (GOLDEN, golden_vectors(dense()))):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_the_command_needs_litert_and_numpy_alone(bundle):
    blocked = "import sys; sys.modules.update(dict.fromkeys(['pydantic', 'click', 'tensorflow', 'tfx', 'rich'])); "
    code = blocked + f"from tfx_edge.device.selftest import main; sys.exit(main([{str(bundle)!r}]))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert run.returncode == 0 and run.stdout.startswith("passed: output 'y'"), run.stderr


@pytest.mark.parametrize(("damage", "status"), [("other model", 2), ("no golden", 1), ("no model", 1)])
def test_exit_status_tells_a_failed_test_from_one_that_cannot_be_made(bundle: Path, damage, status, capsys):
    if damage == "other model":
        (bundle / FLATBUFFER).write_bytes(dense(-KERNEL))
    else:
        (bundle / (GOLDEN if damage == "no golden" else FLATBUFFER)).unlink()
    assert main([str(bundle)]) == status
    said = capsys.readouterr()
    assert ("FAILED: output 'y'" in said.out) if status == 2 else said.err.startswith("error: ")
