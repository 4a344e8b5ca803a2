"""Small models as flatbuffers, made once for all tests of this folder."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

Features = dict[str, NDArray[Any]]


class Models:
    """Makes SavedModels with a signature `serving_default`, and flatbuffers of them, in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, name: str, function: Callable[..., Any], inputs: Mapping[str, Any], owner: Any = None) -> Path:
        """Saves a function of keyword arguments; inputs as (shape, dtype)."""
        import tensorflow as tf

        module = tf.Module()
        module.owner = owner
        module.function = tf.function(function)
        specs = {n: tf.TensorSpec(shape, dtype, name=n) for n, (shape, dtype) in inputs.items()}
        path = self.folder / name
        tf.saved_model.save(module, str(path), signatures={"serving_default": module.function.get_concrete_function(**specs)})
        return path

    def flatbuffer(self, saved_model: Path, *, flex: bool = False) -> bytes:
        import tensorflow as tf

        converter = tf.lite.TFLiteConverter.from_saved_model(str(saved_model), signature_keys=["serving_default"])
        if flex:
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
        result: bytes = converter.convert()
        return result


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def image_saved_model(models: Models) -> Path:
    """A convolution, its activation and a dense layer: image `[n, 8, 8, 1]` to digit `[n, 10]`."""
    import tf_keras as keras

    keras.utils.set_random_seed(3)
    image = keras.Input((8, 8, 1), name="image")
    x = keras.layers.Conv2D(8, 3, activation="relu")(image)
    digit = keras.layers.Dense(10, activation="softmax")(keras.layers.Flatten()(x))
    model = keras.Model(image, digit)
    for variable in model.variables:  # biases start as zeros, which would hide an error, and the predictions all alike
        variable.assign(variable * 4 + np.random.default_rng(5).normal(scale=0.05, size=variable.shape))
    return models.save("image", lambda image: {"digit": model(image)}, {"image": ([None, 8, 8, 1], "float32")}, model)


@pytest.fixture(scope="session")
def image_model(models: Models, image_saved_model: Path) -> bytes:
    return models.flatbuffer(image_saved_model)


@pytest.fixture(scope="session")
def fixed_image_model(models: Models, image_saved_model: Path) -> bytes:
    """`image_model` with a batch of 4 and no other."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(image_saved_model))
    path = models.save(
        "fixed", lambda image: loaded.signatures["serving_default"](image=image), {"image": ([4, 8, 8, 1], "float32")}, loaded
    )
    return models.flatbuffer(path)


@pytest.fixture(scope="session")
def images() -> Features:
    return {"image": np.random.default_rng(0).random((67, 8, 8, 1)).astype(np.float32)}


SCALARS = ("length", "depth", "mass", "year")


@pytest.fixture(scope="session")
def scalar_model(models: Models) -> bytes:
    """As TFX's penguin example: four inputs `[n, 1]`, of very different ranges, two hidden layers, three logits."""
    import tensorflow as tf
    import tf_keras as keras

    keras.utils.set_random_seed(4)
    inputs = [keras.Input((1,), name=name) for name in SCALARS]
    x = keras.layers.Concatenate()(inputs)
    for _ in range(2):
        x = keras.layers.Dense(16, activation="relu")(x)
    model = keras.Model(inputs, keras.layers.Dense(3)(x))

    def function(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"species": model([features[name] for name in SCALARS])}

    return models.flatbuffer(models.save("scalars", function, {name: ([None, 1], "float32") for name in SCALARS}, model))


@pytest.fixture(scope="session")
def scalars() -> Features:
    """Scalar features of 300 examples, sorted by the first, as files often are."""
    generator = np.random.default_rng(1)
    values = generator.normal(size=(300, 4)) * [3, 0.5, 1, 2] + [0, -1, 2, 0]
    values = values[np.argsort(values[:, 0])].astype(np.float32)
    return {name: values[:, i] for i, name in enumerate(SCALARS)}


class Dense:
    """A dense layer with ReLU behind known weights, to be computed by hand."""

    def __init__(self, models: Models) -> None:
        import tensorflow as tf

        generator = np.random.default_rng(2)
        self.kernel = generator.normal(size=(6, 4)).astype(np.float32) * np.float32([1, 0.1, 3, 0.01])
        self.bias = generator.normal(size=4).astype(np.float32)
        self.x = generator.uniform(-2, 5, size=(200, 6)).astype(np.float32)
        self.flatbuffer = models.flatbuffer(
            models.save("dense", lambda x: {"y": tf.nn.relu(x @ self.kernel + self.bias)}, {"x": ([None, 6], "float32")})
        )

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = np.maximum(x.astype(np.float64) @ self.kernel + self.bias, 0)
        return result


@pytest.fixture(scope="session")
def dense(models: Models) -> Dense:
    return Dense(models)


@pytest.fixture
def nothing_on_stdout(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert capfd.readouterr().out == ""
