"""Reading Examples artifacts of several payload formats, built by hand."""

import pickle
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from example_shards import example, examples_artifact, schema, schema_artifact, transform_graph_artifact
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.components.util import examples_utils
from tfx.proto import example_gen_pb2
from tfx.types import standard_artifacts
from tfx_bsl.tfxio import dataset_options

from tfx_edge.components import examples
from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.schemas import EdgeError

SCHEMA = schema(x=("FLOAT", 2), n=("INT",), tags=("BYTES", None))
RECORD = {"x": [1.0, 2.0], "n": [3], "tags": [b"a", b"b"]}


def set_format(artifact: standard_artifacts.Examples, name: str) -> standard_artifacts.Examples:
    examples_utils.set_payload_format(artifact, example_gen_pb2.PayloadFormat.Value(name))
    return artifact


def read(artifacts: list[standard_artifacts.Examples], folder: Path, features: schema_pb2.Schema = SCHEMA) -> list[bytes]:
    """The records of a split "train", in no order, by a pipeline."""
    result = folder / "records"
    sources = examples.split_sources(artifacts, "train", features)
    with clean_errors(), beam.Pipeline(argv=["--runner=DirectRunner", "--direct_running_mode=in_memory"]) as pipeline:
        records = examples.read_examples(pipeline, sources) | beam.Flatten() | beam.combiners.ToList()
        records | beam.Map(lambda found: result.write_bytes(pickle.dumps(found)))
    found: list[bytes] = pickle.loads(result.read_bytes())
    return found


def test_equal_examples_are_read_as_equal_bytes_whatever_the_order_of_their_features(tmp_path: Path) -> None:
    orders = [["x", "n", "tags"], ["tags", "x", "n"], ["n", "tags", "x"]]
    written = [example(RECORD, order) for order in orders]
    assert len(set(written)) == 3
    found = read([examples_artifact(tmp_path / "examples", {"train": [written]})], tmp_path)
    assert len(set(found)) == 1
    assert [tf.train.Example.FromString(r) for r in found] == [tf.train.Example.FromString(r) for r in written]


def test_a_feature_without_values_is_read_as_one_that_is_not_there(tmp_path: Path) -> None:
    empty = tf.train.Example.FromString(example({"n": [3]}))
    empty.features.feature["tags"].bytes_list.SetInParent()  # a list of nothing, and in the next no list
    written = [example({"n": [3]}), example({"n": [3], "tags": []}), empty.SerializeToString()]
    assert len(set(written)) == 3
    assert read([examples_artifact(tmp_path / "examples", {"train": [written]})], tmp_path) == [example({"n": [3]})] * 3


def test_all_artifacts_of_a_channel_are_read(tmp_path: Path) -> None:
    spans = [examples_artifact(tmp_path / f"span {i}", {"train": [[example({"n": [i]})]]}) for i in range(3)]
    assert sorted(read(spans, tmp_path)) == [example({"n": [i]}) for i in range(3)]


def test_parquet_and_sequence_examples_are_read_as_examples(tmp_path: Path) -> None:
    wanted = [tf.train.Example.FromString(example({"x": [1.0, 2.0], "n": [3]}))]
    features = schema(x=("FLOAT", 2), n=("INT",))

    parquet = set_format(examples_artifact(tmp_path / "parquet", {"train": []}), "FORMAT_PARQUET")
    columns = {"x": pa.array([[1, 2]], pa.large_list(pa.float32())), "n": pa.array([[3]], pa.large_list(pa.int64()))}
    pq.write_table(pa.table(columns), f"{parquet.uri}/Split-train/data.parquet")
    assert [tf.train.Example.FromString(r) for r in read([parquet], tmp_path, features)] == wanted

    sequence = tf.train.SequenceExample(context=wanted[0].features)
    written = examples_artifact(tmp_path / "sequence", {"train": [[sequence.SerializeToString()]]})
    found = read([set_format(written, "FORMAT_TF_SEQUENCE_EXAMPLE")], tmp_path, features)
    assert [tf.train.Example.FromString(r) for r in found] == wanted


@pytest.mark.parametrize(
    ("column", "feature", "values"),
    [
        (pa.array([[1, 2], None, []], pa.list_(pa.int32())), ("INT", None), [[1, 2], [], []]),
        (pa.array([[0.1], None, []], pa.list_(pa.float64())), ("FLOAT", None), [[0.1], [], []]),
        (pa.array([["a", "\u00e4"], None, []], pa.list_(pa.string())), ("BYTES", None), [[b"a", b"\xc3\xa4"], [], []]),
        (pa.array([7, None, 9], pa.int64()), ("INT", None), [[7], [], [9]]),
        (pa.array([None, 0.5, 2], pa.float32()), ("FLOAT", None), [[], [0.5], [2.0]]),
        (pa.array(["x", "y", None], pa.large_string()), ("BYTES", None), [[b"x"], [b"y"], []]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_parquet_columns_of_other_types_are_read_as_the_kinds_that_an_example_has(
    column: pa.Array, feature: tuple, values: list[Any], tmp_path: Path
) -> None:
    parquet = set_format(examples_artifact(tmp_path / "parquet", {"train": []}), "FORMAT_PARQUET")
    pq.write_table(pa.table({"n": pa.array([[i] for i in range(3)]), "x": column}), f"{parquet.uri}/Split-train/data.parquet")
    found = [tf.train.Example.FromString(r) for r in read([parquet], tmp_path, schema(n=("INT",), x=feature))]
    wanted = [tf.train.Example.FromString(example({"n": [i], "x": v} if v else {"n": [i]})) for i, v in enumerate(values)]
    assert sorted(found, key=lambda e: e.features.feature["n"].int64_list.value[0]) == wanted


def test_a_custom_pattern_of_a_split_is_followed(tmp_path: Path) -> None:
    artifact = examples_artifact(tmp_path / "examples", {"train": [[example({"n": [1]})], [example({"n": [2]})]]})
    artifact.set_string_custom_property(*examples_utils.get_custom_split_patterns_key_and_property({"train": "Split-train/data-00001*"}))
    assert read([artifact], tmp_path) == [example({"n": [2]})]


def test_records_that_are_no_examples_are_an_error(tmp_path: Path) -> None:
    artifact = examples_artifact(tmp_path / "examples", {"train": [[b"not a tf.Example"]]})
    with pytest.raises(EdgeError, match="^a record of the examples isn't a tf.Example, as their payload_format says; write them again$"):
        read([artifact], tmp_path)


def test_what_no_example_can_hold_is_an_error_that_names_the_feature(tmp_path: Path) -> None:
    parquet = set_format(examples_artifact(tmp_path / "parquet", {"train": []}), "FORMAT_PARQUET")
    pq.write_table(pa.table({"n": [[True]]}), f"{parquet.uri}/Split-train/data.parquet")
    with pytest.raises(EdgeError, match='can\'t be written as tf.Examples: .*"n".*; give the component the output of a Transform'):
        read([parquet], tmp_path, schema(n=("INT",)))


def test_a_payload_format_that_tfx_cannot_read_is_an_error(tmp_path: Path) -> None:
    artifact = set_format(examples_artifact(tmp_path / "examples", {"train": [[b""]]}), "FORMAT_PROTO")
    with pytest.raises(
        EdgeError, match="can't be read: Accessing FORMAT_PROTO requires a DataView to parse the proto.; give the component"
    ):
        examples.split_sources([artifact], "train", SCHEMA)


def test_a_split_that_is_not_there_is_an_error_that_names_those_there(tmp_path: Path) -> None:
    artifact = examples_artifact(tmp_path, {"train": [[]], "eval": [[]]})
    with pytest.raises(EdgeError) as caught:
        examples.split_sources([artifact], "test", SCHEMA)
    assert str(caught.value) == f"split 'test': not in the examples at {tmp_path}, which have train, eval; name one of these"
    artifact.split_names = ""
    with pytest.raises(EdgeError, match="which have none; run the component that makes them again"):
        examples.split_sources([artifact], "train", SCHEMA)


def test_a_split_without_files_is_an_error(tmp_path: Path) -> None:
    artifact = examples_artifact(tmp_path, {"train": []})
    with pytest.raises(EdgeError, match="split 'train' of the examples at .*: no files; run the component that makes it again"):
        examples.split_sources([artifact], "train", SCHEMA)


def test_the_schema_is_that_of_the_transform_graph_where_there_is_one(tmp_path: Path) -> None:
    graph = [transform_graph_artifact(tmp_path / "graph", SCHEMA)]
    raw = [schema_artifact(tmp_path / "schema", schema(raw=("INT",)))]
    assert examples.transformed_schema(graph, raw) == SCHEMA
    assert examples.transformed_schema([], raw) == schema(raw=("INT",))
    with pytest.raises(EdgeError, match="without transform_graph or schema"):
        examples.transformed_schema([], [])


def dense(records: list[bytes], features: schema_pb2.Schema = SCHEMA) -> dict[str, np.ndarray]:
    return examples.dense_features(*examples.decode(records, features))


def test_dense_features_are_those_that_tensorflow_parses() -> None:
    records = [example({"x": [i / 3, float(-i)], "n": [i], "tags": [b"t"] * i}) for i in range(4)]
    expected = tf.io.parse_example(records, {"x": tf.io.FixedLenFeature([2], tf.float32), "n": tf.io.FixedLenFeature([], tf.int64)})
    found = dense(records)
    assert set(found) == set(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype.as_numpy_dtype
        np.testing.assert_array_equal(found[name], values.numpy())


def test_the_adapter_of_a_source_fits_its_batches(tmp_path: Path) -> None:
    artifact = examples_artifact(tmp_path, {"train": [[example(RECORD)]]})
    [source] = examples.split_sources([artifact], "train", SCHEMA, raw_record_column="raw")
    [batch] = source.RecordBatches(dataset_options.RecordBatchesOptions(batch_size=2, num_epochs=1))
    assert examples.dense_features(batch, examples.adapter(source))["x"].tolist() == [[1, 2]]
    assert batch.column("raw").to_pylist() == [[example(RECORD)]]


@pytest.mark.parametrize(
    ("values", "have"),
    [
        ([[1, 2], None, [5, 6]], 0),
        ([[1, 2], [], [5, 6]], 0),
        ([[1, 2], [3], [4, 5]], 1),
        ([[1, 2], None, [3, 4, 5, 6]], 4),  # as many values as three examples should have: each would get another's
        ([[1, 2], [3], [4, 5, 6]], 1),
        ([None, None], 0),
    ],
)
def test_an_example_with_another_number_of_values_is_an_error_that_names_the_feature(values: list[Any], have: int) -> None:
    records = [example({"n": [0]} | ({} if v is None else {"x": [float(f) for f in v]})) for v in values]
    with pytest.raises(EdgeError) as caught:
        dense(records)
    assert str(caught.value) == (
        f"the examples don't fit their schema: feature 'x' has {have} values in an example, the schema says 2; "
        "mend the data or Transform's preprocessing_fn, so that every example has it"
    )


def test_a_default_value_of_the_schema_fills_examples_without_the_feature() -> None:
    features = schema(n=("INT", None), x=("FLOAT", None))
    tensor = features.tensor_representation_group[""].tensor_representation["x"].dense_tensor
    tensor.column_name = "x"
    tensor.default_value.float_value = -1
    tensor.shape.dim.add(size=1)
    assert dense([example({"x": [2.0]}), example({"n": [1]})], features)["x"].tolist() == [[2], [-1]]


def test_values_of_another_type_are_an_error_of_one_line() -> None:
    with pytest.raises(EdgeError, match="^the examples don't fit their schema: .*n.*; mend the data, or the schema$") as caught:
        dense([example({"x": [1.0, 2.0], "n": [0.5]})])
    assert "\n" not in str(caught.value)
