"""Raw features of every kind, and a Transform that makes of them what such functions make."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

SPEC: dict[str, Any] = {
    "length": tf.io.FixedLenFeature([], tf.float32),
    "mass": tf.io.FixedLenFeature([1], tf.float32),
    "window": tf.io.FixedLenFeature([6], tf.float32),
    "hour": tf.io.FixedLenFeature([], tf.int64),
    "code": tf.io.FixedLenFeature([], tf.int64),
    "age": tf.io.VarLenFeature(tf.float32),
    "visits": tf.io.VarLenFeature(tf.int64),
    "word": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def rows(count: int = 60, seed: int = 0) -> list[dict[str, Any]]:
    """Masses around 4,000, lengths 100,000 give or take 10; a third of the ages and visits is missing."""
    generator = np.random.default_rng(seed)

    def row() -> dict[str, Any]:
        return {
            "length": float(generator.normal(1e5, 10)),
            "mass": [float(generator.uniform(2500, 6000))],
            "window": generator.normal(5, 2, 6).astype(float).tolist(),
            "hour": int(generator.integers(24)),
            "code": int(generator.integers(100, 105)),
            "age": [float(generator.gamma(2, 3))] if generator.random() > 1 / 3 else [],
            "visits": [int(generator.integers(1, 50))] if generator.random() > 1 / 3 else [],
            "word": [b"one", b"two", b"three"][int(generator.integers(3))],
            "label": int(generator.integers(3)),
        }

    return [row() for _ in range(count)]


def preprocessing_fn(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    age = tf.squeeze(tf.sparse.to_dense(tf.SparseTensor(inputs["age"].indices, inputs["age"].values, _one_each(inputs["age"])), -1.0), 1)
    visits = tf.squeeze(
        tf.sparse.to_dense(tf.SparseTensor(inputs["visits"].indices, inputs["visits"].values, _one_each(inputs["visits"]))), 1
    )
    return {
        "length": tft.scale_to_z_score(inputs["length"]),
        "mass": tft.scale_to_0_1(inputs["mass"]),
        "density": inputs["mass"][:, 0] / inputs["length"],
        "size": tft.bucketize(inputs["mass"], 4),
        "shift": tf.minimum(inputs["hour"], 12),
        "window": tft.scale_to_z_score(inputs["window"]),
        "hour": tf.sin(2 * math.pi / 24 * tf.cast(inputs["hour"], tf.float32)),
        "age": age,
        "visits": tf.math.log1p(tf.cast(visits, tf.float32)),
        "code": tft.compute_and_apply_vocabulary(inputs["code"]),
        "word": tft.compute_and_apply_vocabulary(inputs["word"]),
        "label": inputs["label"],
    }


def _one_each(values: tf.SparseTensor) -> tf.Tensor:
    return tf.stack([values.dense_shape[0], tf.constant(1, tf.int64)])


def transform_graph(
    folder: Path,
    function: Callable[[Any], Any] = preprocessing_fn,
    data: Sequence[Mapping[str, Any]] = (),
    spec: Mapping[str, Any] = SPEC,
) -> str:
    """What a Transform leaves: the folder of its TransformGraph artifact."""
    import apache_beam as beam
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils

    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(dict(spec)))
    graph = str(folder / "transform_graph")
    options = beam.options.pipeline_options.PipelineOptions(["--runner=DirectRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline, tft_beam.Context(temp_dir=str(folder / "tmp")):
        analyzed = (pipeline | beam.Create(list(data or rows())), metadata) | tft_beam.AnalyzeDataset(function)
        _ = analyzed | tft_beam.WriteTransformFn(graph)
    metadata_io.write_metadata(metadata, f"{graph}/metadata")
    return graph


def encoded(data: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Rows as serialized tf.Examples; an empty list is a missing value."""
    from tfx_edge.pipelines.example_files import serialize

    return [serialize({name: value if value != [] else None for name, value in row.items()}) for row in data]
