"""CalibrationGen: what the sample holds, and what its summary says."""

import gzip
import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from calibration_runs import BY_LABEL, SCHEMA, UNIFORM, encode, files, parsed, population, run, sampled, summary
from example_shards import schema
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.components.util import tfxio_utils

from tfx_edge.components import keys
from tfx_edge.schemas import CalibrationConfig, DuplicateCounts


@pytest.fixture(scope="module")
def records() -> list[bytes]:
    return encode(population())


def test_the_summary_says_what_numpy_says_of_the_sample(records: list[bytes], tmp_path: Path) -> None:
    output = run(tmp_path, [records])
    found, sample = summary(output), sampled(output)
    dense = parsed(sample)
    assert (found.config, found.count, found.population, found.strata) == (UNIFORM, 30, 200, {})
    assert set(found.features) == {"image", "label"}, "text has no range, and what isn't dense feeds no model"
    for name, feature in found.features.items():
        values = dense[name].astype(np.float64)
        assert (feature.min, feature.max) == (values.min(), values.max())
        assert feature.mean == pytest.approx(values.mean(), abs=1e-12)
    framed = b"".join(len(r).to_bytes(8, "little") + r for r in sample)
    assert found.digest == hashlib.sha256(framed).hexdigest()
    assert output.get_int_custom_property("count") == 30
    assert output.get_string_custom_property("strategy") == "uniform"
    assert output.get_string_custom_property("digest") == found.digest


def test_strata_are_counted_by_value_and_proportional(records: list[bytes], tmp_path: Path) -> None:
    output = run(tmp_path, [records], BY_LABEL)
    assert summary(output).strata == {"0": 6, "1": 3, "2": 21}
    assert Counter(map(str, parsed(sampled(output))["label"])) == summary(output).strata
    assert output.get_string_custom_property("strategy") == "stratified"


@pytest.mark.parametrize(
    ("values", "strata"),
    [
        ([[b"cat"], [b"d\xc3\xb6g"], [b"\xff"]], {"cat", "dög", "\\xff"}),
        ([[b"a, b"], [b"a", b"b"], [b'["a", "b"]']], {"a, b", '["a", "b"]', '["[\\"a\\", \\"b\\"]"]'}),
        ([[0.1], [0.5], [-2.0]], {"0.1", "0.5", "-2.0"}),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], {"1, 0, 0", "0, 1, 0", "0, 0, 1"}),
    ],
    ids=["text", "texts", "float", "one-hot"],
)
def test_any_feature_can_stratify(values: list[Any], strata: set[str], tmp_path: Path) -> None:
    records = encode([{"group": values[i % 3], "n": [i]} for i in range(30)])
    kind = {bytes: "BYTES", float: "FLOAT", int: "INT"}[type(values[0][0])]
    config = CalibrationConfig(strategy="stratified", stratify_by="group", num_examples=9)
    output = run(tmp_path, [records], config, schema(group=(kind, None), n=("INT",)))
    assert summary(output).strata == dict.fromkeys(strata, 3)


def test_zero_and_minus_zero_are_one_stratum(tmp_path: Path) -> None:
    records = encode([{"group": [(0.0, -0.0, 1.0)[i % 3]], "n": [i]} for i in range(30)])
    config = CalibrationConfig(strategy="stratified", stratify_by="group", num_examples=9)
    assert summary(run(tmp_path, [records], config, schema(group=("FLOAT",), n=("INT",)))).strata == {"0.0": 6, "1.0": 3}


def test_the_artifact_explains_itself_to_tfx(records: list[bytes], tmp_path: Path) -> None:
    output = run(tmp_path, [records])
    written = files(output)
    features = text_format.Parse(written["schema.pbtxt"].decode(), schema_pb2.Schema())
    assert features == SCHEMA
    shard = f"{output.uri}/Split-calibration/*.gz"
    source = tfxio_utils.make_tfxio(shard, ["test"], "FORMAT_TF_EXAMPLE", schema=features)
    assert source.TensorAdapter().TypeSpecs()["image"].shape == (None, 2, 3)
    header = written["Split-calibration/calibration-00000-of-00001.gz"][:10]
    assert header[4:8] == b"\0\0\0\0", "the time in a gzip header would change the bytes from run to run"
    assert gzip.decompress(written["Split-calibration/calibration-00000-of-00001.gz"])


def test_a_schema_takes_the_place_of_a_transform_graph(records: list[bytes], tmp_path: Path) -> None:
    by_schema = run(tmp_path / "schema", [records], described_by=keys.SCHEMA)
    assert files(by_schema) == files(run(tmp_path / "graph", [records]))


def test_duplicates_are_counted(records: list[bytes], tmp_path: Path) -> None:
    found = summary(run(tmp_path, [records[:40] + records[:10] * 4], UNIFORM.model_copy(update={"num_examples": 40})))
    assert found.population == 80
    # All 40 that there are: each of ten is there five times, as the estimate of distinct ones says that it isn't one.
    assert found.duplicates == DuplicateCounts(repeated=10, copies=40, distinct_estimate=40, distinct_error=0)


@pytest.mark.parametrize("order", [1, -1])
def test_coverage_holds_the_extremes_of_each_feature_and_of_each_element_that_there_is_room_for(order: int, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(400, 9)).astype(np.float32)
    examples = [{"small": row[:2].tolist(), "large": row[2:].tolist(), "n": [i % 50]} for i, row in enumerate(values)]
    features = schema(small=("FLOAT", 2), large=("FLOAT", 7), n=("INT",))
    output = run(tmp_path, [encode(examples)[::order]], CalibrationConfig(num_examples=20, strategy="coverage"), features)
    sample = tf.io.parse_example(
        sampled(output),
        {k: tf.io.FixedLenFeature(s, t) for k, s, t in [("small", 2, tf.float32), ("large", 7, tf.float32), ("n", 1, tf.int64)]},
    )
    for found, there in [(sample["small"].numpy(), values[:, :2]), (sample["large"].numpy().ravel(), values[:, 2:].ravel())]:
        np.testing.assert_array_equal(found.min(0), there.min(0))
        np.testing.assert_array_equal(found.max(0), there.max(0))
    assert {0, 49} <= set(sample["n"].numpy().ravel().tolist())
    assert summary(output).count == 20
    assert 2 <= summary(output).extremes <= 8, "two for n, for large, and for each of small's two elements"
