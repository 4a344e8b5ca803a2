"""What the manifest tells of Transform's preprocessing, against the data that Transform analyzed."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfx_edge.components.tflite_exporter.preprocessing import describe_preprocessing
from tfx_edge.optimize.raw_features import TransformGraph
from tfx_edge.schemas import EdgeError, TensorSpec
from tfx_edge.schemas.preprocessing import Preprocessing

COLORS = ("red", "green", "blue", "green", "red", "red")
DRAWN = np.random.default_rng(0).normal(size=(600, 3)) * [800, 0.01, 5] + [4200, 0.3, 0]
DATA: list[dict[str, Any]] = [
    {
        "mass": np.float32(mass),
        "ratio": np.float32(ratio),
        "tilt": np.float32(tilt),
        "time": 1_700_000_000 + 86_400 * i,
        "tiny": np.float32(1e-7 * tilt),
        "count": i % 7,
        "color": COLORS[i % 6].encode(),
        "pixels": np.full(4, i % 17, np.float32),
        "rare": [np.float32(tilt)] if i % 2 else [],
    }
    for i, (mass, ratio, tilt) in enumerate(DRAWN)
]
AFFINE = ("mass_z", "time_z", "tiny_z", "ratio_01", "count_z", "tilt", "image", "rare_filled")
OTHER = ("mass_log", "mass_bucket", "mass_clipped", "area", "color_index", "pixels_mean", "count_weight")


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, Any]:
    import tensorflow as tf
    import tensorflow_transform as tft

    filled = tf.sparse.to_dense(
        tf.SparseTensor(inputs["rare"].indices, inputs["rare"].values, [inputs["rare"].dense_shape[0], 1]), np.float32(3)
    )
    return {
        "mass_z": tft.scale_to_z_score(inputs["mass"]),
        "ratio_01": tft.scale_to_0_1(inputs["ratio"]),
        "count_z": tft.scale_to_z_score(tf.cast(inputs["count"], tf.float32)),
        "time_z": tft.scale_to_z_score(inputs["time"]),
        "tiny_z": tft.scale_to_z_score(inputs["tiny"]),
        "tilt": inputs["tilt"],
        "image": tf.reshape(inputs["pixels"] / 16, [-1, 2, 2, 1]),
        "rare_filled": filled * 2 - 1,
        "mass_log": tf.math.log1p(tf.abs(inputs["mass"])),
        "mass_bucket": tft.bucketize(inputs["mass"], 5),
        "mass_clipped": tf.minimum(inputs["mass"], 5000),
        "area": inputs["mass"] * inputs["ratio"],
        "count_weight": tf.gather(tf.constant([0.0, 1, 2, 3, 4, 5, 6]), inputs["count"]),
        "color_index": tft.compute_and_apply_vocabulary(inputs["color"], vocab_filename="colors"),
        "pixels_mean": inputs["pixels"] - tf.reduce_mean(inputs["pixels"], 1, keepdims=True),
    }


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A TransformGraph artifact's folder."""
    import apache_beam as beam
    import tensorflow as tf
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils

    spec = {name: tf.io.FixedLenFeature([], tf.float32) for name in ("mass", "ratio", "tilt", "tiny")}
    spec |= {name: tf.io.FixedLenFeature([], tf.int64) for name in ("count", "time")}
    spec |= {"color": tf.io.FixedLenFeature([], tf.string)}
    spec |= {"pixels": tf.io.FixedLenFeature([4], tf.float32), "rare": tf.io.VarLenFeature(tf.float32)}
    schema = schema_utils.schema_from_feature_spec(spec)
    for feature in schema.feature:
        if feature.name == "color":
            feature.string_domain.value.extend(sorted(set(COLORS)))
        if feature.name == "mass":
            feature.float_domain.min = 100.0
    metadata = dataset_metadata.DatasetMetadata(schema)
    folder = tmp_path_factory.mktemp("transform")
    options = beam.options.pipeline_options.PipelineOptions(["--runner=DirectRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline, tft_beam.Context(temp_dir=str(folder / "tmp")):
        function = (pipeline | beam.Create(DATA), metadata) | tft_beam.AnalyzeDataset(preprocessing_fn)
        _ = function | tft_beam.WriteTransformFn(str(folder / "graph"))
    metadata_io.write_metadata(metadata, str(folder / "graph" / "metadata"))
    return str(folder / "graph")


def spec(name: str) -> TensorSpec:
    shape = {"image": (2, 2, 1), "pixels_mean": (4,)}.get(name, (1,))
    return TensorSpec(name=name, shape=(None, *shape), dtype="int64" if name in ("mass_bucket", "color_index") else "float32")


@pytest.fixture(scope="module")
def told(graph: str) -> Preprocessing:
    return describe_preprocessing(TransformGraph(graph), [spec(name) for name in (*AFFINE, *OTHER)])


def test_scaling_is_told_by_what_the_data_has(told: Preprocessing) -> None:
    found = {f.name: f.normalization for f in told.features}
    columns = {name: np.array([row[name] for row in DATA], np.float64) for name in ("mass", "ratio", "count", "time", "tiny")}
    low, high = columns["ratio"].min(), columns["ratio"].max()
    expected = {
        "mass_z": (columns["mass"].mean(), columns["mass"].std()),
        "time_z": (columns["time"].mean(), columns["time"].std()),
        "tiny_z": (columns["tiny"].mean(), columns["tiny"].std()),
        "ratio_01": (low, high - low),
        "count_z": (columns["count"].mean(), columns["count"].std()),
        "tilt": (0, 1),
        "image": (0, 16),
        "rare_filled": (0.5, 0.5),
    }
    for name in AFFINE:
        normalization = found[name]
        assert normalization is not None, name
        assert (*normalization.mean, *normalization.std) == pytest.approx(expected[name], rel=2e-6), name


def test_whatever_is_not_done_value_by_value_on_a_line_has_no_mean(told: Preprocessing) -> None:
    assert {f.name: f.normalization for f in told.features if f.name in OTHER} == dict.fromkeys(OTHER)


def test_sources_domains_and_vocabularies_are_those_of_the_graph(told: Preprocessing) -> None:
    features = {f.name: f for f in told.features}
    assert [f.name for f in told.features] == [*AFFINE, *OTHER]
    assert features["area"].sources == ("mass", "ratio") and features["image"].sources == ("pixels",)
    assert (features["mass_bucket"].min, features["mass_bucket"].max) == (0, 4)
    assert (features["color_index"].min, features["color_index"].max) == (-1, 2)
    raw = {f.name: f for f in told.raw_features}
    assert set(raw) == {"mass", "ratio", "tilt", "count", "color", "pixels", "rare", "time", "tiny"}
    assert [raw[n].shape for n in ("mass", "pixels", "rare")] == [(), (4,), None]
    assert [raw[n].dtype for n in ("mass", "count", "color")] == ["float32", "int64", "string"]
    assert (raw["color"].values, raw["mass"].min, raw["mass"].max, raw["tilt"].min) == (3, 100.0, None, None)
    assert told.vocabularies == {"colors": 3}
    assert all(math.isfinite(v) for f in told.features for v in (f.min, f.max) if v is not None)


def test_only_raw_features_that_the_model_needs_are_told(graph: str) -> None:
    told = describe_preprocessing(TransformGraph(graph), [spec("area")])
    assert [f.name for f in told.raw_features] == ["mass", "ratio"]


def test_a_graph_of_another_model_is_refused(graph: str) -> None:
    with pytest.raises(EdgeError, match="the model takes 'length', the transform graph at .* gives area, color_index, .*; give the"):
        describe_preprocessing(TransformGraph(graph), [TensorSpec(name="length", shape=(None, 1), dtype="float32")])


def test_the_same_graph_elsewhere_is_told_the_same(graph: str, told: Preprocessing, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(graph, tmp_path / "elsewhere")
    assert describe_preprocessing(TransformGraph(str(tmp_path / "elsewhere")), [spec(name) for name in (*AFFINE, *OTHER)]) == told
