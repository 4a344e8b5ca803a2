"""CalibrationGen: the same sample whatever the shards, orders, workers and payload formats."""

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import apache_beam as beam
import pytest
import tensorflow as tf
from calibration_runs import (
    BY_LABEL,
    COVERAGE,
    FILES,
    SCHEMA,
    UNIFORM,
    encode,
    execute,
    files,
    ordered,
    population,
    run,
    sampled,
    summary,
)
from example_shards import examples_artifact, transform_graph_artifact
from tensorflow_transform import impl_helper
from tfx.components.util import examples_utils
from tfx.proto import example_gen_pb2
from tfx_bsl.coders import example_coder

from tfx_edge.components import examples, keys
from tfx_edge.components.calibration_gen.coverage import plan_extremes
from tfx_edge.components.calibration_gen.executor import finish
from tfx_edge.components.calibration_gen.records import KeyRecords, dense_features
from tfx_edge.components.calibration_gen.sample import Draw
from tfx_edge.components.calibration_gen.sampling import sample
from tfx_edge.schemas import CalibrationConfig


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
