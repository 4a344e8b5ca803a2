"""How far a model shrinks at what loss of accuracy, and whether memory stays flat as data grows.

The data are scikit-learn's digits, the model is the example pipeline's, trained as its Trainer trains it. Sizes are gzipped, of the
float flatbuffer over the quantized one; accuracy is of LiteRT on all 599 examples of the eval split, which nothing is trained on,
and a drop is what it lost from the float flatbuffer's. Both come as the mean over the seeds and as the worst of them, and both of
these must reach the goal.
"""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import multiprocessing
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tensorflow as tf
import tf_keras
from ai_edge_litert import schema_py_generated as schema
from google.protobuf import text_format
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types import artifact_utils, standard_artifacts

from benchmarks.figure import Figure
from tfx_edge.components.training_data import training_dataset
from tfx_edge.litert import inspect
from tfx_edge.litert.convert import convert
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.pipelines.digits.user_code import BATCH_SIZE, IMAGE, LABEL, build_model
from tfx_edge.pipelines.example_files import split_rows
from tfx_edge.schemas import (
    ClusteringConfig,
    FineTuningConfig,
    PruningConfig,
    QatConfig,
    QuantizationConfig,
)
from tfx_edge.schemas.optimizers import CosineRate

SEEDS = range(3)  # of the model's weights, of the order of the examples in every training
EPOCHS, CALIBRATED = 20, 200  # as in the example pipeline

LAYERS = ("conv_1", "conv_2", "hidden", "digit")
SPARSITY = {"conv_1": 0.7, "conv_2": 0.7, "hidden": 0.9, "digit": 0.6}  # nine in ten of all weights are in `hidden`
CLUSTERS = 16  # distinct values of each kernel, zero included

Split = tuple[NDArray[np.float32], NDArray[np.int64]]
Measures = dict[str, float]
Better = Literal["higher", "lower"]


def figures() -> Iterator[Figure]:
    """Sizes and accuracy drops of each technique, and peak memory."""
    data = _digits()
    floats = {seed: _trained(data["train"], seed) for seed in SEEDS}
    yield from _compression(data, floats)
    yield _memory()


def _digits() -> dict[str, Split]:
    """The example pipeline's splits after its Transform: images `[n, 8, 8, 1]` from 0 to 1, labels `[n]`."""
    images, labels = load_digits(return_X_y=True)
    rows = [{IMAGE: image / 16, LABEL: label} for image, label in zip(images, labels, strict=True)]
    return {
        name: (np.array([row[IMAGE] for row in part], np.float32).reshape(-1, 8, 8, 1), np.array([row[LABEL] for row in part], np.int64))
        for name, part in split_rows(rows, LABEL).items()
    }


def _trained(train: Split, seed: int) -> tf_keras.Model:
    """The float model, as the example pipeline's `run_fn` trains it."""
    tf_keras.utils.set_random_seed(seed)
    model = build_model()
    model.compile(tf_keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
    model.fit(tf.data.Dataset.from_tensor_slices(train).shuffle(2_000, seed=seed).batch(BATCH_SIZE), epochs=EPOCHS, verbose=0)
    return model


def _examples(split: Split) -> tf.data.Dataset:
    images, labels = split
    return tf.data.Dataset.from_tensor_slices(({IMAGE: images}, labels))


def _tuning(seed: int, epochs: int, learning_rate: float) -> FineTuningConfig:
    return FineTuningConfig(label_key=LABEL, epochs=epochs, learning_rate=learning_rate, schedule=CosineRate(final=0.02), seed=seed)


# Compression


def _compression(data: Mapping[str, Split], floats: Mapping[int, tf_keras.Model]) -> Iterator[Figure]:
    measured = [_compressed(data, model, seed) for seed, model in floats.items()]

    def over_seeds(name: str, unit: str, goal: float, better: Better) -> Iterator[Figure]:
        yield from _mean_and_worst(f"compression.{name}", [m[name] for m in measured], unit, goal, better)

    yield from over_seeds("prune_80.drop", "of accuracy", 0.01, "lower")
    for technique, goal in (("prune_ptq", 12.0), ("prune_cluster_ptq", 14.0), ("pcqat", 18.0)):
        yield from over_seeds(f"{technique}.gzip", "x smaller than float", goal, "higher")
        yield from over_seeds(f"{technique}.drop", "of accuracy", 0.01, "lower")
    for part in ("prune_ptq", "cluster_ptq", "qat"):
        yield from over_seeds(f"pcqat.against_{part}", f"x smaller than {part}", 1.0, "higher")
    # Zeros and shared values in the same places take the same bytes, however they became integers: what is left are names and scales.
    yield from over_seeds("pcqat.against_prune_cluster_ptq", "x smaller than prune_cluster_ptq", 0.98, "higher")


def _compressed(data: Mapping[str, Split], model: tf_keras.Model, seed: int) -> Measures:
    """Compresses one model in every way; zeros and shared values are counted in the flatbuffers."""
    examples = _examples(data["train"])
    pruning = PruningConfig(layer_sparsity=SPARSITY, fine_tuning=_tuning(seed, 20, 1e-3))
    clustering = ClusteringConfig(clusters={"*": CLUSTERS}, fine_tuning=_tuning(seed, 5, 5e-4))
    training = QatConfig(fine_tuning=_tuning(seed, 5, 2e-4))

    pruned_80, _ = prune(model, examples, PruningConfig(target_sparsity=0.8, fine_tuning=_tuning(seed, 20, 1e-3)))
    pruned, _ = prune(model, examples, pruning)
    both, _ = cluster(pruned, examples, clustering)
    clustered, _ = cluster(model, examples, clustering)
    pcqat, report = train_quantized(both, examples, training)
    qat, _ = train_quantized(model, examples, training)
    assert report.technique == "PCQAT"

    floating, sparse = _flatbuffer(model), _flatbuffer(pruned_80)
    _check_zeros(_kernels(sparse), dict.fromkeys(LAYERS, 0.8))
    quantized = {
        "prune_ptq": _quantized(pruned, data["train"]),
        "cluster_ptq": _quantized(clustered, data["train"]),
        "prune_cluster_ptq": _quantized(both, data["train"]),
        "qat": _flatbuffer(qat, "int8"),
        "pcqat": _flatbuffer(pcqat, "int8"),
    }
    for name in ("prune_ptq", "prune_cluster_ptq", "pcqat"):
        _check_zeros(_kernels(quantized[name]), SPARSITY)
    for name in ("cluster_ptq", "prune_cluster_ptq", "pcqat"):
        _check_values(_kernels(quantized[name]))

    accuracy, size = _accuracy(floating, data["eval"]), {name: inspect.gzip_size(flatbuffer) for name, flatbuffer in quantized.items()}
    measures = {"prune_80.drop": accuracy - _accuracy(sparse, data["eval"])}
    for name, flatbuffer in quantized.items():
        measures[f"{name}.drop"] = accuracy - _accuracy(flatbuffer, data["eval"])
        measures[f"{name}.gzip"] = inspect.gzip_size(floating) / size[name]
        measures[f"pcqat.against_{name}"] = size[name] / size["pcqat"]
    return measures


def _flatbuffer(model: tf_keras.Model, quantized_io: Literal["int8"] | None = None) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        from_keras_model(model).save(folder)
        return convert(folder, quantized_io=quantized_io)


def _quantized(model: tf_keras.Model, train: Split) -> bytes:
    """Post-training quantization to int8, inputs and outputs too, by the ranges over a few training examples."""
    floating = _flatbuffer(model)
    ranges = RangeCollector(floating)({IMAGE: train[0][:CALIBRATED]})
    return apply_plan(floating, make_plan(floating, QuantizationConfig(scheme="int8", io_type="int8"), ranges, "benchmark"), ranges)


def _accuracy(flatbuffer: bytes, split: Split) -> float:
    images, labels = split
    [scores] = Runner(flatbuffer)({IMAGE: images}).values()
    return float(np.mean(scores.argmax(-1) == labels))


def _kernels(flatbuffer: bytes) -> dict[str, NDArray[Any]]:
    """The weights of the convolutions and dense layers, flat, by the layers' names."""
    parsed = inspect.parse(flatbuffer)
    [graph] = parsed.subgraphs
    weighted = [op for op in graph.operators if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) in _WEIGHTED]
    tensors = [graph.tensors[op.inputs[1]] for op in weighted]
    values = [np.frombuffer(bytes(parsed.buffers[t.buffer].data), _DTYPES[t.type]) for t in tensors]
    return dict(zip(LAYERS, values, strict=True))


_WEIGHTED = ("CONV_2D", "FULLY_CONNECTED")
_DTYPES = {schema.TensorType.FLOAT32: np.float32, schema.TensorType.INT8: np.int8}


def _check_zeros(kernels: Mapping[str, NDArray[Any]], sparsity: Mapping[str, float]) -> None:
    for layer, kernel in kernels.items():
        assert np.sum(kernel == 0) >= round(sparsity[layer] * kernel.size), f"{layer}: {np.mean(kernel == 0):.4f} of the weights are zero"


def _check_values(kernels: Mapping[str, NDArray[Any]]) -> None:
    for layer, kernel in kernels.items():
        assert np.unique(kernel).size <= CLUSTERS, f"{layer}: {np.unique(kernel).size} distinct values"


def _mean(name: str, values: Sequence[float], unit: str, goal: float, better: Better) -> Figure:
    return Figure(name, statistics.fmean(values), unit, goal, better, (min(values), max(values)), len(values))


def _mean_and_worst(name: str, values: Sequence[float], unit: str, goal: float, better: Better) -> Iterator[Figure]:
    mean = _mean(name, values, unit, goal, better)
    yield mean
    yield replace(mean, name=f"{name}.worst", value=(min if better == "higher" else max)(values))


# Memory

SIDE, SHARD, TIMES, BUFFER, MEMORY_RUNS = 64, 4_000, 10, 1_000, 3  # images of 16 KiB: ten shards are 625 MiB
_DIMS = f"dim {{ size: {SIDE} }} dim {{ size: {SIDE} }} dim {{ size: 1 }}"
SCHEMA = f"""
feature {{ name: "{IMAGE}" type: FLOAT presence {{ min_fraction: 1 }} shape {{ {_DIMS} }} }}
feature {{ name: "{LABEL}" type: INT presence {{ min_fraction: 1 }} shape {{ }} }}
"""


def _memory() -> Figure:
    """Peak memory of pruning while fine-tuning on ten times the examples, over that on the examples."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder, "few"), Path(folder, "many")
        _write_shard(few / "Split-train" / "0.gz")
        (many / "Split-train").mkdir(parents=True)
        for i in range(TIMES):
            os.link(few / "Split-train" / "0.gz", many / "Split-train" / f"{i}.gz")
        ratios = [_in_child(many) / _in_child(few) for _ in range(MEMORY_RUNS)]
    value, spread = statistics.median(ratios), (min(ratios), max(ratios))
    return Figure("compression.memory", value, f"x peak memory with {TIMES} times the examples", 1.1, "lower", spread, MEMORY_RUNS)


def _write_shard(path: Path) -> None:
    """Digits, blown up."""
    images, labels = load_digits(return_X_y=True)
    path.parent.mkdir(parents=True)
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        for i in range(SHARD):
            at = i % len(labels)
            example = tf.train.Example()
            pixels = np.kron(images[at].reshape(8, 8) / 16, np.ones((SIDE // 8, SIDE // 8)))
            example.features.feature[IMAGE].float_list.value.extend(pixels.ravel().tolist())
            example.features.feature[LABEL].int64_list.value.append(int(labels[at]))
            writer.write(example.SerializeToString())


def _in_child(folder: Path) -> int:
    """A process of its own for each run: a peak never falls."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_peak, str(folder)).result()


def _peak(folder: str) -> int:
    """Prunes a small model on a folder's split `train`, read from its files; the peak of resident memory in KiB."""
    artifact = standard_artifacts.Examples()
    artifact.uri, artifact.split_names = folder, artifact_utils.encode_split_names(["train"])
    dataset = training_dataset([artifact], "train", text_format.Parse(SCHEMA, schema_pb2.Schema()), [IMAGE], LABEL)
    image = tf_keras.Input((SIDE, SIDE, 1), name=IMAGE)
    x = tf_keras.layers.Flatten()(tf_keras.layers.AveragePooling2D(SIDE // 8)(image))
    model = tf_keras.Model(image, tf_keras.layers.Dense(10, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy")
    tuning = FineTuningConfig(label_key=LABEL, epochs=2, shuffle_buffer=BUFFER)
    prune(model, dataset, PruningConfig(fine_tuning=tuning))
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1])
