"""Predictions through LiteRT: the right input in the right place, values real at both ends."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner, dequantize, quantize
from tfx_edge.schemas import EdgeError, QuantizationConfig


@pytest.fixture(scope="module")
def int8_dense(dense: Any) -> bytes:
    ranges = RangeCollector(dense.flatbuffer)({"x": dense.x})
    plan = make_plan(dense.flatbuffer, QuantizationConfig(scheme="int8", io_type="int8"), ranges, "digest")
    return apply_plan(dense.flatbuffer, plan, ranges)


def test_a_dense_layer_predicts_what_numpy_computes(dense: Any) -> None:
    np.testing.assert_allclose(Runner(dense.flatbuffer)({"x": dense.x})["y"], dense(dense.x), rtol=1e-5, atol=1e-5)


def test_inputs_go_by_name_whatever_their_order_and_company(scalar_model: bytes, scalars: dict[str, Any]) -> None:
    runner = Runner(scalar_model)
    expected = runner(scalars)["species"]
    reordered = {"label": np.zeros(300, np.int64), **dict(reversed(scalars.items()))}
    np.testing.assert_array_equal(runner(reordered)["species"], expected)
    swapped = {**scalars, "length": scalars["mass"], "mass": scalars["length"]}
    assert not np.allclose(runner(swapped)["species"], expected)


def test_a_scalar_feature_feeds_an_input_of_one_value(scalar_model: bytes, scalars: dict[str, Any]) -> None:
    runner = Runner(scalar_model)
    columns = {name: values[:, None] for name, values in scalars.items()}
    np.testing.assert_array_equal(runner(scalars)["species"], runner(columns)["species"])


@pytest.mark.parametrize("count", [1, 3, 4, 11, 67])
def test_a_model_fixed_to_a_batch_predicts_any_number_of_examples(
    image_model: bytes, fixed_image_model: bytes, images: dict[str, Any], count: int
) -> None:
    fixed = Runner(fixed_image_model)
    assert fixed.batch_size == 4
    assert Runner(image_model).batch_size is None
    batch = {"image": images["image"][:count]}
    np.testing.assert_allclose(fixed(batch)["digit"], Runner(image_model)(batch)["digit"], rtol=1e-6)


def test_memory_is_laid_out_again_only_when_the_batch_size_changes(
    image_model: bytes, images: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out = []

    class Counting:
        """LiteRT's wrapper, as an Interpreter holds it."""

        def __init__(self, wrapper: Any) -> None:
            self.wrapper = wrapper

        def __getattr__(self, name: str) -> Any:
            return getattr(self.wrapper, name)

        def AllocateTensors(self, subgraph: int) -> None:
            laid_out.append(subgraph)
            self.wrapper.AllocateTensors(subgraph)

    runner = Runner(image_model)
    monkeypatch.setattr(runner._interpreter, "_interpreter", Counting(runner._interpreter._interpreter))
    for at in range(0, 67, 16):
        runner({"image": images["image"][at : at + 16]})
    assert laid_out == [0, 0]  # for 16 and for the 3 that are left


def test_large_examples_run_a_few_at_a_time_and_predict_the_same() -> None:
    x, y = Tensor("x", "float32", (None, 2**17)), Tensor("y", "float32", (None, 2**17))  # 512 KiB each
    options = schema.MulOptionsT()
    model = pack([Graph("serving_default", (x,), (y,), (Op("MUL", (x, Tensor("by", "float32", (), value=np.array(3))), (y,), options),))])
    rows: list[int] = []
    runner = Runner(model, observe=lambda i: rows.append(len(i.get_tensor(i.get_input_details()[0]["index"]))))
    values = np.random.default_rng(0).normal(size=(11, 2**17)).astype(np.float32)
    np.testing.assert_array_equal(runner({"x": values})["y"], values * 3)
    assert rows == [4, 4, 4]
    runner({"x": values[:3]})
    assert rows[3:] == [3]


def test_no_examples_give_no_predictions(image_model: bytes, fixed_image_model: bytes, images: dict[str, Any]) -> None:
    for model in (image_model, fixed_image_model):
        assert Runner(model)({"image": images["image"][:0]})["digit"].shape == (0, 10)


def test_quantizing_and_back_is_off_by_half_a_step_at_most() -> None:
    generator = np.random.default_rng(0)
    for dtype in ("int8", "uint8", "int16"):
        bounds = np.iinfo(dtype)
        for _ in range(20):
            scale, zero_point = float(generator.uniform(1e-3, 10)), int(generator.integers(bounds.min, bounds.max))
            low, high = (bounds.min - zero_point) * scale, (bounds.max - zero_point) * scale
            values = generator.uniform(low, high, size=1000)
            back = dequantize(quantize(values, dtype, scale, zero_point), scale, zero_point)
            assert np.abs(back - values).max() <= scale / 2 * 1.02  # float32 has 24 bits, int16 takes 16 of them


def test_large_arrays_are_quantized_as_their_parts_are() -> None:
    values = np.random.default_rng(0).normal(size=(5, 3, 50_001)).astype(np.float32)
    whole = quantize(values, "int8", 0.01, -5)
    assert whole.shape == values.shape
    for i in range(5):
        for j in range(3):
            for part in np.array_split(np.arange(50_001), 7):
                np.testing.assert_array_equal(whole[i, j, part], quantize(values[i, j, part], "int8", 0.01, -5))


def test_values_beyond_the_range_saturate() -> None:
    np.testing.assert_array_equal(quantize(np.array([-1e30, -np.inf, 1e30, np.inf]), "int8", 0.1, 3), np.int8([-128, -128, 127, 127]))


def test_an_int8_model_takes_and_gives_real_values(dense: Any, int8_dense: bytes) -> None:
    runner = Runner(int8_dense)
    [x], [y] = runner.signature.inputs, runner.signature.outputs
    assert (x.dtype, y.dtype) == ("int8", "int8") and y.scale is not None and x.scale is not None
    predicted = runner({"x": dense.x})["y"]
    assert predicted.dtype == np.float32
    assert np.abs(predicted - dense(dense.x)).max() < 6 * (x.scale + y.scale)


def test_a_value_beyond_an_int8_inputs_range_counts_as_its_end(dense: Any, int8_dense: bytes) -> None:
    runner = Runner(int8_dense)
    [x] = runner.signature.inputs
    assert x.scale is not None and x.zero_point is not None
    end = np.full((1, 6), (127 - x.zero_point) * x.scale, np.float32)
    np.testing.assert_array_equal(runner({"x": end * 100})["y"], runner({"x": end})["y"])


def test_a_missing_feature_is_named_with_those_that_are_there(scalar_model: bytes, scalars: dict[str, Any]) -> None:
    others = {name: values for name, values in scalars.items() if name != "mass"}
    with pytest.raises(EdgeError, match=r"the batch: no feature 'mass'.*'depth', 'length', 'year'"):
        Runner(scalar_model)(others, "the batch")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array([["a"] * 6], dtype=object), "feature 'x' has type object, the model's input takes float32"),
        (np.zeros((2, 5), np.float32), r"feature 'x': an example has shape \(5,\), the model's input takes \(6,\)"),
    ],
)
def test_a_feature_that_is_no_input_is_an_error(dense: Any, values: Any, said: str) -> None:
    with pytest.raises(EdgeError, match=said):
        Runner(dense.flatbuffer)({"x": values})


def test_nan_has_no_place_in_an_int8_input(dense: Any, int8_dense: bytes) -> None:
    values = dense.x.copy()
    values[3, 2] = np.nan
    with pytest.raises(EdgeError, match="feature 'x' holds NaN"):
        Runner(int8_dense)({"x": values})


def test_features_of_different_lengths_are_an_error(scalar_model: bytes, scalars: dict[str, Any]) -> None:
    with pytest.raises(EdgeError, match="different numbers of examples.*'mass': 7"):
        Runner(scalar_model)({**scalars, "mass": scalars["mass"][:7]})


@pytest.mark.parametrize(
    ("values", "said"),
    [(np.array([[2**40]]), "doesn't fit the model's int32 input"), (np.array([[0.5]]), "doesn't fit the model's int32 input")],
)
def test_integers_never_wrap_and_fractions_are_never_dropped(models: Any, values: Any, said: str) -> None:
    path = models.save("integers", lambda token: {"next": token + 1}, {"token": ([None, 1], "int32")})
    runner = Runner(models.flatbuffer(path))
    np.testing.assert_array_equal(runner({"token": np.array([[41]], np.int64)})["next"], [[42]])
    with pytest.raises(EdgeError, match=said):
        runner({"token": values})


@pytest.mark.parametrize("size", [0, 3, 100, 5000])
def test_a_damaged_file_is_an_error(image_model: bytes, size: int) -> None:
    with pytest.raises(EdgeError, match=rf"pushed/7 \({size} bytes\): LiteRT can't load it"):
        Runner(image_model[:size], name="pushed/7")


def test_a_model_that_needs_flex_is_refused_even_where_tensorflow_would_lend_it_the_kernel(models: Any) -> None:
    import tensorflow as tf  # loaded, it links its Flex delegate into LiteRT; a device has none

    path = models.save("flex", lambda x: {"y": tf.linalg.det(x)}, {"x": ([None, 3, 3], "float32")})
    with pytest.raises(EdgeError, match="custom:FlexMatrixDeterminant"):
        Runner(models.flatbuffer(path, flex=True))


_MODULES = (
    "runner",
    "entry",
    "quantization",
    "child",
    "latency",
    "memory",
    "inspect",
    "ranges",
    "finish",
    "weights",
    "convert",
    "recipes",
    "plan",
)


def test_running_and_inspecting_need_no_tensorflow() -> None:
    names = ", ".join(f"tfx_edge.litert.{m}" for m in _MODULES)
    code = f"import sys, {names}; print([m for m in ('tensorflow', 'tf_keras', 'tfx', 'litert_quantizer') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("model", ["model.tflite", None])
def test_a_path_in_place_of_a_models_bytes_says_what_to_give(model: object) -> None:
    with pytest.raises(EdgeError, match=r"expected the bytes of a \.tflite file; give Path\(\.\.\.\)\.read_bytes\(\)"):
        Runner(model)  # type: ignore[arg-type]
