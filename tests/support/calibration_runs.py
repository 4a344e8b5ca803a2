"""CalibrationGen's executor on Examples artifacts built by hand, from the files in to the files out."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from example_shards import example, examples_artifact, schema, schema_artifact, transform_graph_artifact
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from tfx_edge.components import keys
from tfx_edge.components.calibration_gen.executor import Executor
from tfx_edge.schemas import CalibrationConfig, CalibrationSummary, EdgeError
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


def failure(folder: Path, shards: Sequence[Sequence[bytes]], **arguments: Any) -> str:
    """The error's text, after checking that it is one line and that nothing is left."""
    with pytest.raises(EdgeError) as caught:
        run(folder, shards, **arguments)
    assert files(folder) == {}
    assert "\n" not in str(caught.value)
    return str(caught.value)
