"""Whether CalibrationGen's memory stays flat as data grows, and what sampling costs beside reading alone.

Both over the executor with Beam's in-memory runner and one worker; memory in a process of its own for each run. A record is a tf.Example of
1 KiB; the data are `FEW` records in the training split, or `TIMES` as many, all of them distinct. A split of 1,000 is held out. The
plain side reads the same files with `ReadFromTFRecord` and counts the records.
"""

import multiprocessing
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import apache_beam as beam
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils, standard_artifacts

from benchmarks.figure import Figure, ratio
from tfx_edge.components import keys
from tfx_edge.components.calibration_gen.executor import Executor
from tfx_edge.schemas import CalibrationConfig
from tfx_edge.schemas.artifact_types import CalibrationData

FEW, TIMES, HELD_OUT, SHARDS, VALUES = 20_000, 10, 1_000, 4, 256
MEMORY_RUNS = 3
GOALS = {"uniform": 8.0, "stratified": 15.0, "coverage": 12.0}  # of time: reading alone parses nothing
SCHEMA = f"""
feature {{ name: "image" type: FLOAT presence {{ min_fraction: 1 }} shape {{ dim {{ size: {VALUES} }} }} }}
feature {{ name: "label" type: INT presence {{ min_fraction: 1 }} shape {{ }} }}
"""
CONFIGS = {
    "uniform": CalibrationConfig(),
    "stratified": CalibrationConfig(strategy="stratified", stratify_by="label"),
    "coverage": CalibrationConfig(strategy="coverage"),
}
ARGUMENTS = ["--runner=DirectRunner", "--direct_running_mode=in_memory", "--direct_num_workers=1", "--sdk_container_image=none"]


def figures() -> Iterator[Figure]:
    """Peak memory at ten times the data for each strategy, and time beside reading alone."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder, "few"), Path(folder, "many")
        _write(few, FEW)
        _write(many, FEW * TIMES)
        for strategy in CONFIGS:
            yield _memory(strategy, few, many)
        for strategy, goal in GOALS.items():
            yield ratio(
                f"calibration.time.{strategy}",
                partial(_sample, str(many), strategy),
                partial(_count, str(many)),
                unit="x ReadFromTFRecord and Count",
                goal=goal,
                better="lower",
            )


def _memory(strategy: str, few: Path, many: Path) -> Figure:
    ratios = [_in_child(many, strategy) / _in_child(few, strategy) for _ in range(MEMORY_RUNS)]
    spread = min(ratios), max(ratios)
    unit = f"x peak memory with {TIMES} times the examples"
    return Figure(f"calibration.memory.{strategy}", statistics.median(ratios), unit, 1.1, "lower", spread, MEMORY_RUNS)


def _write(folder: Path, count: int) -> None:
    """Examples with random values, which differ from each other and from the held-out ones."""
    random = np.random.default_rng(count)
    for split, records in (("train", count), ("eval", HELD_OUT)):
        (folder / f"Split-{split}").mkdir(parents=True)
        for shard in range(SHARDS):
            with tf.io.TFRecordWriter(str(folder / f"Split-{split}" / f"data-{shard:05d}")) as writer:
                for i in range(records // SHARDS):
                    writer.write(_example(random.normal(size=VALUES).astype(np.float32), i % 10))


def _example(values: np.ndarray, label: int) -> bytes:
    """The serialized tf.Example, put together from bytes, since a protocol buffer takes ten times as long."""
    floats = values.tobytes()

    def field(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    image = field(1, field(1, b"image") + field(2, field(2, field(1, floats))))
    return field(1, image + field(1, field(1, b"label") + field(2, field(3, field(1, bytes([label]))))))


def _in_child(folder: Path, strategy: str) -> int:
    """A process of its own for each run: a peak never falls."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_peak, str(folder), strategy).result()


def _peak(folder: str, strategy: str) -> int:
    """Samples; the peak of resident memory in KiB. Not `getrusage`, whose peak goes back to before the process was started anew."""
    _sample(folder, strategy)
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1])


def _count(folder: str) -> None:
    with beam.Pipeline(argv=ARGUMENTS) as pipeline:
        records = pipeline | beam.io.ReadFromTFRecord(f"{folder}/Split-train/*")
        _ = records | beam.combiners.Count.Globally() | beam.Map(_check_count)


def _check_count(count: int) -> None:
    assert count == FEW * TIMES


def _sample(folder: str, strategy: str) -> None:
    """Runs CalibrationGen's executor."""
    with tempfile.TemporaryDirectory() as scratch:
        examples, graph, output = standard_artifacts.Examples(), standard_artifacts.TransformGraph(), CalibrationData()
        examples.uri, examples.split_names = folder, artifact_utils.encode_split_names(["train", "eval"])
        graph.uri, output.uri = f"{scratch}/graph", f"{scratch}/output"
        metadata = Path(graph.uri, "transformed_metadata")
        metadata.mkdir(parents=True)
        (metadata / "schema.pbtxt").write_text(text_format.MessageToString(text_format.Parse(SCHEMA, schema_pb2.Schema())))
        context = BaseBeamExecutor.Context(beam_pipeline_args=ARGUMENTS, tmp_dir=f"{scratch}/tmp", unique_id="1")
        inputs = {keys.EXAMPLES: [examples], keys.TRANSFORM_GRAPH: [graph]}
        Executor(context).Do(inputs, {keys.CALIBRATION_DATA: [output]}, {keys.CONFIG: CONFIGS[strategy].to_json()})
        assert output.get_int_custom_property("count") == CONFIGS[strategy].num_examples
