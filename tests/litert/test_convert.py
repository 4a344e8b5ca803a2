"""Conversion in a child process: the same bytes every time, and one line for whatever goes wrong."""

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfx_edge.litert import inspect
from tfx_edge.litert.convert import convert
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.schemas import EdgeError


def test_the_same_model_gives_the_same_bytes_from_any_path_and_working_directory(
    image_saved_model: Path, images: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = convert(str(image_saved_model))
    elsewhere = tmp_path / "a folder" / "model"
    shutil.copytree(image_saved_model, elsewhere)
    for name in ("tensorflow", "litert", "inspect"):  # what a child with this directory on its path would import
        (tmp_path / f"{name}.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert convert("a folder/model") == first

    import tensorflow as tf

    expected = tf.saved_model.load(str(image_saved_model)).signatures["serving_default"](image=images["image"])["digit"]
    np.testing.assert_allclose(Runner(first)(images)["digit"], expected, rtol=1e-4, atol=1e-6)
    assert not [op for op in inspect.operators(first) if op.startswith(inspect.CUSTOM)]


def test_a_model_that_computes_in_float16_is_told_from_one_with_an_operator_that_litert_has_not(models: Any) -> None:
    import tensorflow as tf

    half = np.ones((4, 4), np.float16)
    path = models.save("half", lambda x: {"y": tf.cast(tf.cast(x, tf.float16) @ half, tf.float32)}, {"x": ([None, 4], "float32")})
    with pytest.raises(EdgeError, match="tf.MatMul .at matmul. computes in 16 bits.*bring the model to float32") as error:
        convert(str(path), name="model 7")
    assert "\n" not in str(error.value)


def test_an_operator_that_litert_has_not_is_named_with_the_model(models: Any) -> None:
    import tensorflow as tf

    path = models.save("determinant", lambda x: {"y": tf.linalg.det(x) + 1.0}, {"x": ([None, 3, 3], "float32")})
    with pytest.raises(EdgeError) as error:
        convert(str(path), name="model 7")
    assert str(error.value).startswith("model 7: tf.MatrixDeterminant (at MatrixDeterminant) needs Flex:")
    assert "\n" not in str(error.value)


def test_a_folder_without_a_saved_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match=f"model 7: no SavedModel at {tmp_path}"):
        convert(str(tmp_path), name="model 7")


def test_a_saved_model_without_the_signature_is_an_error(models: Any, tmp_path: Path) -> None:
    import tensorflow as tf

    module = tf.Module()
    module.f = tf.function(lambda x: {"y": x + 1.0})
    tf.saved_model.save(module, str(tmp_path), signatures={"other": module.f.get_concrete_function(x=tf.TensorSpec([None, 1]))})
    with pytest.raises(EdgeError, match="model 7: TFLiteConverter refused it: .*'serving_default'.*'other'"):
        convert(str(tmp_path), name="model 7")


def test_a_converter_that_takes_too_long_is_stopped(image_saved_model: Path) -> None:
    start = time.monotonic()
    with pytest.raises(EdgeError, match="model 7: TFLiteConverter was stopped after 0.2 s"):
        convert(str(image_saved_model), name="model 7", time_limit_s=0.2)
    assert time.monotonic() - start < 2


def test_a_converter_that_dies_is_an_error_with_its_last_words(
    image_saved_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nprint('F0000 pass.cc:7] Check failed: shape', file=sys.stderr, flush=True)\nos.abort()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(
        EdgeError, match=r"model 7: TFLiteConverter died \(SIGABRT\); its last words: F0000 pass.cc:7\] Check failed: shape"
    ):
        convert(str(image_saved_model), name="model 7")


def test_an_operator_that_litert_has_not_is_named_with_the_layer_that_it_comes_from(tmp_path: Path) -> None:
    import tensorflow as tf
    import tf_keras as keras

    x = keras.Input((3, 3), name="x")
    inner = keras.Model(x, keras.layers.Lambda(lambda t: tf.linalg.det(t)[:, None], name="determinant")(x), name="inner")
    model = keras.Model(x, keras.layers.Dense(2)(inner(x)), name="outer")
    from_keras_model(model).save(str(tmp_path / "saved"))
    with pytest.raises(EdgeError, match=r"tf.MatrixDeterminant \(at outer/inner/determinant\) needs Flex.*select_tf_ops"):
        convert(str(tmp_path / "saved"))


def test_operators_of_tensorflow_come_in_where_they_are_allowed_and_the_runner_says_that_litert_has_them_not(models: Any) -> None:
    import tensorflow as tf

    path = models.save("allowed", lambda x: {"y": tf.linalg.det(x) + 1.0}, {"x": ([None, 3, 3], "float32")})
    flatbuffer = convert(str(path), select_tf_ops=True)
    assert inspect.operators(flatbuffer) == {"ADD": 1, "custom:FlexMatrixDeterminant": 1}
    with pytest.raises(EdgeError, match="custom:FlexMatrixDeterminant, which LiteRT has not"):
        Runner(flatbuffer)


def test_several_signatures_stand_in_one_flatbuffer_and_share_constants(models: Any) -> None:
    import tensorflow as tf

    kernel = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    module = tf.Module()
    module.kernel = tf.Variable(kernel)
    spec = tf.TensorSpec([None, 64], tf.float32, name="x")
    signatures = {
        "embed": tf.function(lambda x: {"vector": x @ module.kernel}).get_concrete_function(spec),
        "score": tf.function(lambda x: {"logit": tf.reduce_sum(tf.nn.relu(x @ module.kernel), 1)}).get_concrete_function(spec),
    }
    path = models.folder / "several"
    tf.saved_model.save(module, str(path), signatures=signatures)
    flatbuffer = convert(str(path), signatures=("embed", "score"))
    x = np.random.default_rng(1).normal(size=(5, 64)).astype(np.float32)
    for name, function in signatures.items():
        for output, expected in function(x=tf.constant(x)).items():
            np.testing.assert_allclose(Runner(flatbuffer, signature=name)({"x": x})[output], expected, rtol=1e-4, atol=1e-4)
    assert len(flatbuffer) < 1.5 * kernel.nbytes


@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_fixed_batch_fixes_every_shape_and_predicts_what_any_other_does(tmp_path: Path, batch_size: int) -> None:
    import tf_keras as keras

    keras.utils.set_random_seed(1)
    x = keras.Input((8, 6), name="x")
    pooled = keras.layers.UpSampling1D(2)(keras.layers.Conv1D(4, 3)(x))  # a shape that a batch of any size must compute
    model = from_keras_model(keras.Model(x, keras.layers.Dense(3, name="y")(keras.layers.Flatten()(pooled))))
    model.save(str(tmp_path / "fixed"), batch_size)
    flatbuffer = convert(str(tmp_path / "fixed"))
    [graph] = inspect.parse(flatbuffer).subgraphs
    assert all(-1 not in list(t.shapeSignature if t.shapeSignature is not None else []) for t in graph.tensors)
    assert not {"SHAPE", "PACK"} & set(inspect.operators(flatbuffer))
    assert Runner(flatbuffer).batch_size == batch_size
    features = {"x": np.random.default_rng(0).normal(size=(7, 8, 6)).astype(np.float32)}
    np.testing.assert_allclose(Runner(flatbuffer)(features)["y"], model.predict(features)["y"], rtol=1e-4, atol=1e-5)
