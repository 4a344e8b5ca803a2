"""A small image classifier that was pruned, to be trained further, and what its flatbuffers hold."""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.litert import inspect
from tfx_edge.litert.convert import _child as convert_here  # TensorFlow is loaded already, so it needs no process of its own
from tfx_edge.schemas import FineTuningConfig, QatConfig

FINE_TUNING = FineTuningConfig(label_key="y", epochs=3, batch_size=32, learning_rate=5e-4)


def qat(**fields: Any) -> QatConfig:
    return QatConfig(fine_tuning=FINE_TUNING, **fields)


def images(count: int = 256) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Bright above or bright below."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, count)
    pixels = rng.uniform(0, 0.6, (count, 8, 8, 1)).astype(np.float32)
    pixels[labels == 0, :4] += 0.2
    pixels[labels == 1, 4:] += 0.2
    return {"image": pixels * 20}, labels  # activations far above 6, where tfmot's ranges start


def dataset() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(images())


def pruned(model: tf_keras.Model, share: float = 0.6) -> tf_keras.Model:
    for layer in model.layers:
        if layer.name in ("conv", "wide", "hidden", "head"):
            kernel, *rest = layer.get_weights()
            kernel[np.abs(kernel) < np.quantile(np.abs(kernel), share)] = 0
            layer.set_weights([kernel, *rest])
    return model


@functools.cache
def image_model() -> tf_keras.Model:
    """Two convolutions, the first with a BatchNormalization of which some scales are negative; kernels 60 % zero."""
    tf_keras.utils.set_random_seed(7)
    inputs = layers.Input((8, 8, 1), name="image")
    x = layers.Conv2D(6, 3, use_bias=False, name="conv")(inputs)
    x = layers.BatchNormalization(momentum=0.5, gamma_initializer=tf_keras.initializers.RandomUniform(-1, 2, seed=3), name="norm")(x)
    x = layers.Conv2D(8, 3, activation="relu", name="wide")(layers.ReLU(name="relu")(x))
    x = layers.Dense(12, "relu", name="hidden")(layers.Flatten(name="flat")(x))
    model = tf_keras.Model(inputs, layers.Dense(2, name="head")(x), name="images")
    model.compile(tf_keras.optimizers.Adam(0.003), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(*images(), epochs=6, verbose=0)
    pruned(model)
    model.fit(*images(), epochs=1, verbose=0)
    return pruned(model)


def flatbuffer(folder: Path, model: tf_keras.Model, io: str | None = None) -> bytes:
    """Converts a model; `io` is None for float, else the type of inputs and outputs."""
    saved = folder / "saved"
    if not saved.exists():
        model.save(saved, save_format="tf")
    settings = json.dumps({"signatures": ["serving_default"], "quantized_io": io, "select_tf_ops": False})
    assert convert_here(str(saved), str(folder), settings) == 0, (folder / "refusal.txt").read_text()
    return Path(folder, "model.tflite").read_bytes()


def kernels(model_bytes: bytes) -> list[np.ndarray]:
    """Integer weights of a flatbuffer's convolutions and dense layers in order, their output channel first."""
    parsed = inspect.parse(model_bytes)
    graph, found = parsed.subgraphs[0], []
    for op in graph.operators:
        if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) in ("CONV_2D", "FULLY_CONNECTED"):
            tensor = graph.tensors[op.inputs[1]]
            dtype = {0: np.float32, 9: np.int8}[tensor.type]
            found.append(np.frombuffer(bytes(parsed.buffers[tensor.buffer].data), dtype).reshape(tensor.shape))
    return found
