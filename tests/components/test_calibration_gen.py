"""The component on Examples artifacts built by hand, from the files in to the files out."""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
import tensorflow as tf
from example_shards import example, examples_artifact, schema, schema_artifact, transform_graph_artifact
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform import impl_helper
from tfx.components.util import examples_utils, tfxio_utils
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import example_gen_pb2
from tfx.types import standard_artifacts
from tfx.types.channel import Channel
from tfx_bsl.coders import example_coder

from tfx_edge.components import examples, keys
from tfx_edge.components.calibration_gen.component import CalibrationGen
from tfx_edge.components.calibration_gen.coverage import plan_extremes
from tfx_edge.components.calibration_gen.executor import Executor, finish
from tfx_edge.components.calibration_gen.records import KeyRecords, dense_features
from tfx_edge.components.calibration_gen.sample import Draw
from tfx_edge.components.calibration_gen.sampling import sample
from tfx_edge.schemas import CalibrationConfig, CalibrationSummary, DuplicateCounts, EdgeError, NonFiniteCounts
from tfx_edge.schemas.artifact_types import CalibrationData

Features = dict[str, Any]

SCHEMA = schema(image=("FLOAT", 2, 3), label=("INT",), name=("BYTES",), tags=("INT", None), weights=("FLOAT", None))
UNIFORM = CalibrationConfig(num_examples=30, seed=5)
COVERAGE = CalibrationConfig(num_examples=30, seed=5, strategy="coverage")
BY_LABEL = CalibrationConfig(num_examples=30, seed=5, strategy="stratified", stratify_by="label")
FILES = {"Split-calibration/calibration-00000-of-00001.gz", "calibration.json", "schema.pbtxt"}


def population(count: int = 200) -> list[Features]:
    """Examples with dense, sparse and text features; the labels 0, 1, 2 are in 1, 2 and 7 of 10."""
    values = np.random.default_rng(0).normal(size=(count, 6)).astype(np.float32)
    return [
        {"image": row.tolist(), "label": [max(0, min(2, i % 10 - 1))], "name": [b"no %d" % i], "weights": [1.5] * (i % 3)}
        for i, row in enumerate(values)
    ]


def run(
    folder: Path,
    shards: Sequence[Sequence[bytes]],
    config: CalibrationConfig = UNIFORM,
    features: schema_pb2.Schema = SCHEMA,
    described_by: str = keys.TRANSFORM_GRAPH,
    held_out: Sequence[bytes] = (),
    workers: int = 1,
    mode: str = "in_memory",
) -> CalibrationData:
    """Runs the executor on a split "train" of these shards, beside a split "eval"."""
    describe = {keys.TRANSFORM_GRAPH: transform_graph_artifact, keys.SCHEMA: schema_artifact}[described_by]
    artifact = examples_artifact(folder / "examples", {"train": shards, "eval": [held_out]})
    return execute(folder, [artifact], {described_by: [describe(folder / described_by, features)]}, config, workers, mode)


def execute(
    folder: Path,
    examples: list[standard_artifacts.Examples],
    description: dict[str, list],
    config: CalibrationConfig,
    workers: int = 1,
    mode: str = "in_memory",
) -> CalibrationData:
    output = CalibrationData()
    output.uri = str(folder / "output")
    Path(output.uri).mkdir(parents=True, exist_ok=True)  # as TFX does
    # Without an image or package named, TFX packs itself up for remote workers each time an executor is made: 4 seconds.
    args = ["--runner=DirectRunner", f"--direct_running_mode={mode}", f"--direct_num_workers={workers}", "--sdk_container_image=none"]
    context = BaseBeamExecutor.Context(beam_pipeline_args=args, tmp_dir=str(folder / "tmp"), unique_id="1")
    Executor(context).Do({keys.EXAMPLES: examples, **description}, {keys.CALIBRATION_DATA: [output]}, {keys.CONFIG: config.to_json()})
    return output


def files(output: CalibrationData | Path) -> dict[str, bytes]:
    folder = Path(output.uri) if isinstance(output, CalibrationData) else output / "output"
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def summary(output: CalibrationData) -> CalibrationSummary:
    return CalibrationSummary.from_json(files(output)["calibration.json"])


def sampled(output: CalibrationData) -> list[bytes]:
    """The sample's records, read by TensorFlow."""
    return list(tf.data.TFRecordDataset(f"{output.uri}/Split-calibration/calibration-00000-of-00001.gz", "GZIP").as_numpy_iterator())


def parsed(records: Sequence[bytes]) -> dict[str, np.ndarray]:
    """Dense features, by TensorFlow's own parser."""
    spec = {"image": ((2, 3), tf.float32), "label": ((), tf.int64), "name": ((), tf.string)}
    return {k: v.numpy() for k, v in tf.io.parse_example(records, {k: tf.io.FixedLenFeature(*s) for k, s in spec.items()}).items()}


def encode(examples: Sequence[Features], random: Random | None = None) -> list[bytes]:
    """Serializes, each example with its features in an order of its own where a source of randomness is given."""
    return [example(e, random.sample(list(e), len(e)) if random else None) for e in examples]


def ordered(records: Sequence[bytes]) -> set[bytes]:
    """The distinct records, features by name, those without values left out."""
    parsed = [tf.train.Example.FromString(r) for r in records]
    for e in parsed:
        for name in [n for n, f in e.features.feature.items() if not f.WhichOneof("kind")]:
            del e.features.feature[name]
    return {e.SerializeToString(deterministic=True) for e in parsed}


@pytest.fixture(scope="module")
def records() -> list[bytes]:
    return encode(population())


@pytest.mark.parametrize("config", [UNIFORM, BY_LABEL, COVERAGE], ids=lambda c: c.strategy)
def test_shards_order_workers_and_the_order_of_features_change_no_byte(
    config: CalibrationConfig, records: list[bytes], tmp_path: Path
) -> None:
    random = Random(1)
    broken = [{**e, "image": [float("nan")] * 6} for e in population(3)]
    records = records + encode(population(200)[:50]) + encode(broken)
    expected = files(run(tmp_path / "one", [records], config, held_out=records[:40]))
    mixed = random.sample(encode(population(), random) + encode(population()[:50], random) + encode(broken, random), len(records))
    assert set(expected) == FILES
    assert files(run(tmp_path / "two", [mixed[:3], mixed[3:]], config, held_out=mixed_of(records[:40]))) == expected
    seven = [mixed[i::7] for i in range(7)]
    assert files(run(tmp_path / "seven", seven, config, held_out=records[:40], workers=3)) == expected


def test_worker_processes_change_no_byte(records: list[bytes], tmp_path: Path) -> None:
    """All strategies in one pipeline, since it takes long to start the processes."""
    records = records + encode(population()[:50]) + encode([{**e, "image": [float("nan")] * 6} for e in population(3)])
    artifact = examples_artifact(tmp_path / "examples", {"train": [records[i::7] for i in range(7)], "eval": [records[:40]]})
    train = examples.split_sources([artifact], "train", SCHEMA)
    held_out = {"eval": examples.split_sources([artifact], "eval", SCHEMA)}
    dense = dense_features(SCHEMA)
    covering = COVERAGE.model_copy(update={"overlap": "warn"})  # with "drop" it would be drawn twice: an extreme is held out
    keys_of = {
        UNIFORM: KeyRecords(dense),
        BY_LABEL: KeyRecords(dense, "label"),
        covering: KeyRecords(dense, scores=plan_extremes(dense, covering).scores),
    }
    arguments = ["--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]

    class Written(beam.PTransform):
        def __init__(self, config: CalibrationConfig) -> None:
            self.config = config

        def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
            outcome, left_out = sample(
                pipeline, Draw(self.config, drops=self.config.overlap == "drop"), keys_of[self.config], train, held_out
            )
            uri = str(tmp_path / self.config.strategy / "output")
            done = partial(finish, held_out=("eval",), config=self.config, schema=SCHEMA.SerializeToString(), uri=uri, short=f"{uri}/short")
            return outcome | beam.Map(done, beam.pvalue.AsDict(left_out))

    with beam.Pipeline(argv=arguments) as pipeline:
        for config in keys_of:
            _ = pipeline | config.strategy >> Written(config)
    for config in keys_of:
        there = files(tmp_path / config.strategy)
        assert there == files(run(tmp_path / f"{config.strategy} in memory", [records], config, held_out=records[:40]))


def mixed_of(records: Sequence[bytes]) -> list[bytes]:
    """The same examples, each with its features in another order."""
    return [b"".join(reversed(parts(r))) for r in reversed(records)]


def parts(record: bytes) -> list[bytes]:
    """A tf.Example for each feature of one; parsing them together merges them."""
    whole = tf.train.Example.FromString(record)
    return [
        tf.train.Example(features=tf.train.Features(feature={n: f})).SerializeToString() for n, f in sorted(whole.features.feature.items())
    ]


def test_several_examples_artifacts_give_the_sample_of_one_with_all_their_records(records: list[bytes], tmp_path: Path) -> None:
    graph = {keys.TRANSFORM_GRAPH: [transform_graph_artifact(tmp_path / "graph", SCHEMA)]}
    spans = [examples_artifact(tmp_path / f"span {i}", {"train": [records[i::3]], "eval": [records[i : i + 1]]}) for i in range(3)]
    whole = run(tmp_path / "whole", [records], COVERAGE, held_out=records[:3])
    assert files(execute(tmp_path / "spans", spans, graph, COVERAGE)) == files(whole)


def test_parquet_gives_the_sample_of_the_same_tf_examples(records: list[bytes], tmp_path: Path) -> None:
    """The Parquet files are written as TFX's Transform writes them."""
    graph = {keys.TRANSFORM_GRAPH: [transform_graph_artifact(tmp_path / "graph", SCHEMA)]}
    parquet = examples_artifact(tmp_path / "parquet", {"train": [], "eval": []})
    examples_utils.set_payload_format(parquet, example_gen_pb2.PayloadFormat.FORMAT_PARQUET)
    arrow = impl_helper.make_tensor_to_arrow_converter(SCHEMA).arrow_schema()
    decoder = example_coder.ExamplesToRecordBatchDecoder(SCHEMA.SerializeToString())
    with beam.Pipeline(argv=["--runner=DirectRunner", "--direct_running_mode=in_memory"]) as pipeline:
        for split, there in {"train": records, "eval": records[:9]}.items():
            rows = decoder.DecodeBatch(list(there)).to_pandas().to_dict("records")
            written = pipeline | f"Rows{split}" >> beam.Create(rows)
            _ = written | f"Write{split}" >> beam.io.WriteToParquet(f"{parquet.uri}/Split-{split}/data", arrow, file_name_suffix=".parquet")
    expected = run(tmp_path / "tf examples", [records], COVERAGE, held_out=records[:9])
    assert files(execute(tmp_path / "from parquet", [parquet], graph, COVERAGE)) == files(expected)


def test_the_sample_is_the_smallest_hashes_of_the_distinct_records(tmp_path: Path) -> None:
    records = encode(population(), Random(2)) + encode(population(50), Random(3)) + encode(population(5), Random(4)) * 40
    output = run(tmp_path, [records])
    distinct = ordered(records)
    assert len(distinct) == 200 < len(set(records))
    key = UNIFORM.seed.to_bytes(8, "little")
    expected = sorted(distinct, key=lambda r: hashlib.blake2b(r, digest_size=16, key=key).digest())[:30]
    assert sampled(output) == expected
    assert summary(output).population == len(records)


def test_another_seed_gives_another_sample(records: list[bytes], tmp_path: Path) -> None:
    other = UNIFORM.model_copy(update={"seed": 6})
    assert set(sampled(run(tmp_path / "a", [records]))) != set(sampled(run(tmp_path / "b", [records], other)))


def test_data_that_grows_changes_the_sample_by_new_records_alone(records: list[bytes], tmp_path: Path) -> None:
    sample = sampled(run(tmp_path / "a", [records]))
    grown = sampled(run(tmp_path / "b", [records + encode(population(220)[200:])]))
    assert set(grown) - set(sample) <= ordered(encode(population(220)[200:])), "only new records came in"


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
        ([[0.1], [0.5], [-2.0]], {"0.1", "0.5", "-2.0"}),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], {"1, 0, 0", "0, 1, 0", "0, 0, 1"}),
    ],
    ids=["text", "float", "one-hot"],
)
def test_any_feature_can_stratify(values: list[Any], strata: set[str], tmp_path: Path) -> None:
    records = encode([{"group": values[i % 3], "n": [i]} for i in range(30)])
    kind = {bytes: "BYTES", float: "FLOAT", int: "INT"}[type(values[0][0])]
    config = CalibrationConfig(strategy="stratified", stratify_by="group", num_examples=9)
    output = run(tmp_path, [records], config, schema(group=(kind, None), n=("INT",)))
    assert summary(output).strata == dict.fromkeys(strata, 3)


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


def failure(folder: Path, shards: Sequence[Sequence[bytes]], **arguments: Any) -> str:
    """The error's text, after checking that it is one line and that nothing is left."""
    with pytest.raises(EdgeError) as caught:
        run(folder, shards, **arguments)
    assert files(folder) == {}
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_split_without_examples_is_an_error(records: list[bytes], tmp_path: Path) -> None:
    config = UNIFORM.model_copy(update={"split": "eval"})
    assert failure(tmp_path, [records], config=config).startswith(
        "split 'eval': it holds no examples, num_examples asks for 30; name a split"
    )


def test_a_split_that_does_not_exist_is_an_error_that_names_those_there(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records], config=UNIFORM.model_copy(update={"split": "test"}))
    assert text == f"split 'test': not in the examples at {tmp_path / 'examples'}, which have train, eval; name one of these"


def test_too_few_distinct_examples_are_an_error_that_counts_them(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records[:20] * 9])
    assert text == (
        "num_examples 30: split 'train' has 20 distinct examples (180 with 160 duplicates); lower num_examples to 20 or less, "
        "or give CalibrationGen a split with more data"
    )


def test_stratifying_by_a_feature_that_the_schema_lacks_is_an_error(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records], config=BY_LABEL.model_copy(update={"stratify_by": "labels"}))
    assert text == "stratify_by 'labels': not a feature of the schema, which has image, label, name, tags, weights; name one of these"


@pytest.mark.parametrize("tags", [{}, {"tags": []}], ids=["no feature", "no value"])
def test_stratifying_by_a_feature_that_an_example_lacks_is_an_error(tags: Features, tmp_path: Path) -> None:
    examples = [e | {"tags": [1]} for e in population(60)]
    del examples[40]["tags"]
    config = BY_LABEL.model_copy(update={"stratify_by": "tags"})
    text = failure(tmp_path, [encode([*examples[:40], examples[40] | tags, *examples[41:]])], config=config)
    assert text.startswith("stratify_by 'tags': an example has no value of it; mend the data")


def test_stratifying_by_a_continuous_feature_is_an_error(tmp_path: Path) -> None:
    records = encode([{"x": [i / 7]} for i in range(50)])
    config = BY_LABEL.model_copy(update={"stratify_by": "x"})
    text = failure(tmp_path, [records], config=config, features=schema(x=("FLOAT",)))
    assert text.startswith("stratify_by 'x': 50 different values in split 'train', more than num_examples 30")


@pytest.mark.parametrize(
    ("broken", "have"),
    [({}, "0 integer values"), ({"label": [1, 2]}, "2 integer values"), ({"label": [0.5]}, "0 integer values")],
    ids=["missing", "two values", "another type"],
)
def test_an_example_that_lacks_a_dense_feature_is_an_error_wherever_it_is(broken: Features, have: str, tmp_path: Path) -> None:
    examples = population()
    del examples[150]["label"]
    examples[150] |= broken
    text = failure(tmp_path, [encode(examples)], config=UNIFORM.model_copy(update={"num_examples": 2}))
    assert text.startswith(
        f"the examples don't fit their schema: feature 'label' has {have} in an example, the schema says 1; mend the data"
    )


def test_a_feature_with_a_default_value_may_be_missing(tmp_path: Path) -> None:
    features = schema(n=("INT",), x=("FLOAT", None))
    tensor = features.tensor_representation_group[""].tensor_representation["x"].dense_tensor
    tensor.column_name = "x"
    tensor.default_value.float_value = -1
    output = run(tmp_path, [encode([{"n": [i]} | ({"x": [0.5]} if i else {}) for i in range(30)])], features=features)
    assert (summary(output).features["x"].min, summary(output).features["x"].max) == (-1, 0.5)


def broken_population() -> list[Features]:
    """60 examples, three of which have NaN and one of these and another one infinity; an infinite weight feeds no model."""
    examples = population(60)
    for i in (3, 4, 5):
        examples[i]["image"] = [1.0] * 5 + [float("nan")]
    examples[5]["score"] = [float("-inf")]
    examples[8]["score"] = [float("inf")]
    examples[9]["weights"] = [1.0, float("-inf"), float("inf")]
    return [{"score": [0.5], **e} for e in examples]


WITH_SCORE = schema(image=("FLOAT", 2, 3), label=("INT",), name=("BYTES",), score=("FLOAT",), weights=("FLOAT", None))


@pytest.mark.parametrize("config", [UNIFORM, BY_LABEL, COVERAGE], ids=lambda c: c.strategy)
def test_examples_with_nan_or_infinity_are_left_out_and_counted_by_feature(config: CalibrationConfig, tmp_path: Path) -> None:
    config = config.model_copy(update={"num_examples": 56})
    output = run(tmp_path, [encode(broken_population())], config, WITH_SCORE)
    found = summary(output)
    assert found.population == 60
    assert found.non_finite == NonFiniteCounts(records=4, features={"image": 3, "score": 2})
    good = [e for i, e in enumerate(broken_population()) if i not in (3, 4, 5, 8)]
    assert set(sampled(output)) == ordered(encode(good))


def test_nan_and_infinity_are_an_error_that_counts_them_where_the_config_says_so(tmp_path: Path) -> None:
    config = UNIFORM.model_copy(update={"non_finite": "error"})
    text = failure(tmp_path, [encode(broken_population())], config=config, features=WITH_SCORE)
    assert text == (
        "split 'train': feature 'image' is NaN or infinite in 3, feature 'score' is NaN or infinite in 2 of the 60 examples; mend the data, "
        "or fill such values in Transform's preprocessing_fn, or set non_finite to 'drop'"
    )


def test_a_split_whose_every_example_has_nan_is_an_error_that_names_the_feature(tmp_path: Path) -> None:
    examples = [{**e, "image": [float("nan")] * 6} for e in population(40)]
    assert failure(tmp_path, [encode(examples)]) == (
        "split 'train': feature 'image' is NaN or infinite in 40 of the 40 examples; "
        "mend the data, or fill such values in Transform's preprocessing_fn"
    )


def test_duplicates_are_counted(records: list[bytes], tmp_path: Path) -> None:
    found = summary(run(tmp_path, [records[:40] + records[:10] * 4], UNIFORM.model_copy(update={"num_examples": 40})))
    assert found.population == 80
    # All 40 that there are: each of ten is there five times, as the estimate of distinct ones says that it isn't one.
    assert found.duplicates == DuplicateCounts(repeated=10, copies=40, distinct_estimate=40, distinct_error=0)


# Coverage


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


def test_a_coverage_sample_without_room_for_the_extremes_is_an_error(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records], config=COVERAGE.model_copy(update={"num_examples": 3}))
    assert text == (
        "num_examples 3: strategy 'coverage' keeps up to 2 examples for each of 2 numeric features; raise num_examples to 4 or more, "
        "or take strategy 'uniform'"
    )


def test_coverage_of_no_numeric_features_is_an_error(tmp_path: Path) -> None:
    text = failure(tmp_path, [encode([{"name": [b"a"]}])], config=COVERAGE, features=schema(name=("BYTES",)))
    assert text.startswith("strategy 'coverage': the schema has no numeric dense feature")


# Held-out splits


def test_examples_that_are_in_eval_too_are_dropped_and_named(records: list[bytes], tmp_path: Path) -> None:
    free = sampled(run(tmp_path / "free", [records]))
    output = run(tmp_path / "shared", [records], held_out=[*free[2:9], example({"n": [1]})])
    assert set(free[:2] + free[9:]) <= set(sampled(output)) and not set(free[2:9]) & set(sampled(output))
    found = summary(output).overlap
    assert (found.splits, found.checked, found.found, len(found.named)) == (("eval",), 60, 7, 5)
    assert [named.digest for named in found.named] == [hashlib.sha256(r).hexdigest() for r in free[2:7]]
    first = parsed(free[2:3])
    assert found.named[0].split == "eval"
    assert found.named[0].values["name"] == first["name"][0].decode()
    assert found.named[0].values["image"] == ", ".join(map(str, first["image"].ravel()[:4])) + ", ... (6 values)"


def test_examples_that_are_in_eval_too_can_be_kept(records: list[bytes], tmp_path: Path) -> None:
    config = UNIFORM.model_copy(update={"overlap": "warn"})
    output = run(tmp_path, [records], config, held_out=records)
    assert sampled(output) == sampled(run(tmp_path / "alone", [records]))
    assert (summary(output).overlap.checked, summary(output).overlap.found) == (30, 30)


def test_examples_that_are_in_eval_too_can_be_an_error(records: list[bytes], tmp_path: Path) -> None:
    config = UNIFORM.model_copy(update={"overlap": "error"})
    text = failure(tmp_path, [records], config=config, held_out=records)
    assert text.startswith("30 of 30 examples of split 'train' are also in 'eval', the first with image: ")
    assert text.endswith("; mend the splits, or set overlap to 'drop'")


def test_a_split_that_is_all_in_eval_too_is_an_error_that_counts_them(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records[:40]], held_out=records)
    assert text == (
        "num_examples 30: split 'train' has no example to sample (40 with 0 duplicates, 40 of them also in a held-out split); "
        "give CalibrationGen another split"
    )


def test_other_splits_can_be_held_out_or_none(records: list[bytes], tmp_path: Path) -> None:
    none = run(tmp_path / "none", [records], UNIFORM.model_copy(update={"held_out": ()}), held_out=records)
    assert summary(none).overlap is None
    text = failure(tmp_path / "test", [records], config=UNIFORM.model_copy(update={"held_out": ("test",)}))
    assert text.startswith("split 'test': not in the examples at")


def test_a_record_that_is_no_example_is_an_error(tmp_path: Path) -> None:
    assert failure(tmp_path, [[b"not a tf.Example"]]).startswith("a record of the examples isn't a tf.Example")


def test_an_output_that_cannot_be_finished_is_removed(records: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "output" / "calibration.json").mkdir(parents=True)  # in the way of the last file
    with pytest.raises(Exception, match=r"calibration\.json"):
        run(tmp_path, [records])
    assert files(tmp_path) == {}


def test_a_component_without_transform_graph_and_schema_is_an_error_where_it_is_made() -> None:
    with pytest.raises(EdgeError, match="CalibrationGen: neither transform_graph nor schema is given"):
        CalibrationGen(examples=Channel(type=standard_artifacts.Examples))


def test_the_component_keeps_its_config_as_json() -> None:
    graph = Channel(type=standard_artifacts.TransformGraph)
    made = CalibrationGen(examples=Channel(type=standard_artifacts.Examples), transform_graph=graph, config=BY_LABEL)
    assert CalibrationConfig.from_json(made.exec_properties[keys.CONFIG]) == BY_LABEL
    assert made.outputs[keys.CALIBRATION_DATA].type is CalibrationData
    default = CalibrationGen(examples=Channel(type=standard_artifacts.Examples), transform_graph=graph)
    assert json.loads(default.exec_properties[keys.CONFIG]) == CalibrationConfig().model_dump()


def test_the_config_can_be_a_runtime_parameter() -> None:
    parameter = RuntimeParameter(name="calibration", ptype=str, default=UNIFORM.to_json())
    schema_channel = Channel(type=standard_artifacts.Schema)
    made = CalibrationGen(examples=Channel(type=standard_artifacts.Examples), schema=schema_channel, config=parameter)
    assert made.exec_properties[keys.CONFIG] is parameter
