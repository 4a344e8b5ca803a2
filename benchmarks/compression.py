"""How far a model shrinks at what loss of accuracy, what a teacher gives a student, and whether memory stays flat as data grows.

The data are scikit-learn's digits, the model is the example pipeline's, trained as its Trainer trains it. Sizes are gzipped, of the
float flatbuffer over the quantized one; accuracy is of LiteRT on all 599 examples of the eval split, which nothing is trained on,
and a drop is float's less. Every figure comes as the mean over the seeds and as the worst of them, which both must reach the goal.
"""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import multiprocessing
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tensorflow as tf
import tf_keras
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
from tfx_edge.optimize.distillation import distill, scaled_student
from tfx_edge.optimize.fine_tuning import fine_tune
from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.optimize.model_copy import copy_model
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.pipelines.digits.user_code import BATCH_SIZE, IMAGE, LABEL, build_model
from tfx_edge.pipelines.example_files import split_rows
from tfx_edge.schemas import (
    ClusteringConfig,
    DistillationConfig,
    FineTuningConfig,
    PruningConfig,
    QatConfig,
    QuantizationConfig,
    ScaledStudent,
)
from tfx_edge.schemas.optimizers import CosineRate

SEEDS = range(5)  # of the model's weights, of the order of the examples in every training
EPOCHS, CALIBRATED = 20, 200  # as in the example pipeline

LAYERS = ("conv_1", "conv_2", "hidden", "digit")
SPARSITY = {"conv_1": 0.7, "conv_2": 0.7, "hidden": 0.9, "digit": 0.6}  # nine in ten of all weights are in `hidden`
CLUSTERS = 16  # distinct values of each kernel, zero included

Split = tuple[NDArray[np.float32], NDArray[np.int64]]
Measures = dict[str, float]


def figures() -> Iterator[Figure]:
    """Sizes and accuracy drops of each technique, a student with and without its teacher, and peak memory."""
    data = _digits()
    floats = {seed: _trained(data["train"], seed) for seed in SEEDS}
    yield from _compression(data, floats)
    yield from _distillation(data, floats)
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

    def over_seeds(name: str, unit: str, goal: float, better: Literal["higher", "lower"]) -> Iterator[Figure]:
        yield from _mean_and_worst(f"compression.{name}", [m[name] for m in measured], unit, goal, better)

    yield from over_seeds("prune_80.drop", "of accuracy", 0.01, "lower")
    for technique, goal in (("prune_ptq", 12.0), ("prune_cluster_ptq", 14.0), ("pcqat", 18.0)):
        yield from over_seeds(f"{technique}.gzip", "x smaller than float", goal, "higher")
        yield from over_seeds(f"{technique}.drop", "of accuracy", 0.01, "lower")
    for part in ("prune_ptq", "cluster_ptq", "qat"):
        yield from over_seeds(f"pcqat.against_{part}", f"x smaller than {part}", 1.0, "higher")


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

    floating, float_80 = _float(model), _float(pruned_80)
    _check(float_80, dict.fromkeys(LAYERS, 0.8))
    quantized = {
        "prune_ptq": _checked(_quantized(_float(pruned), data["train"]), SPARSITY),
        "cluster_ptq": _checked(_quantized(_float(clustered), data["train"]), clusters=CLUSTERS),
        "prune_cluster_ptq": _checked(_quantized(_float(both), data["train"]), SPARSITY, CLUSTERS),
        "qat": _flatbuffer(qat, "int8"),
        "pcqat": _checked(_flatbuffer(pcqat, "int8"), SPARSITY, CLUSTERS),
    }
    return {}
