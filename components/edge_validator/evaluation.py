"""The Beam pipeline: examples through both models and TFMA."""

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import apache_beam as beam
import pyarrow as pa
import tensorflow_model_analysis as tfma
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_model_analysis.api import types
from tfx.dsl.io import fileio
from tfx_bsl.tfxio import tensor_adapter, tfxio

from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.documents import read_bytes
from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE, eval_config
from tfx_edge.components.edge_validator.extractor import predict_extractor
from tfx_edge.components.edge_validator.model_pair import ModelPaths
from tfx_edge.components.examples import dense_features
from tfx_edge.schemas import EdgeError, GateConfig


def evaluate(
    pipeline: AbstractContextManager[beam.Pipeline],
    sources: Sequence[tfxio.TFXIO],
    schema: schema_pb2.Schema,
    config: GateConfig,
    paths: ModelPaths,
    output: str,
) -> int:
    """Evaluates both models on all examples and writes TFMA's files, or nothing.

    Args:
        pipeline: runs on leaving it.
        sources: of the examples, at least one.
        schema: of the examples.
        config: thresholds, slices and batch size.
        paths: the models.
        output: an empty folder.

    Returns:
        How many examples were read, counted before TFMA got them.

    Raises:
        ModelFault: a model can't be loaded or can't predict.
        EdgeError: there are no examples, they don't fit their schema, or a thresholded metric isn't a number.
    """
    try:
        with clean_errors(), pipeline as p:
            _build(p, sources, schema, config, paths, output)
        count = f"{output}/{_COUNT}"
        examples = int(read_bytes(count))
        fileio.remove(count)
        if examples == 0:
            raise EdgeError(
                f"split {config.split!r}: no examples; a gate that looked at nothing can't bless, evaluate on a split that has some"
            )
    except BaseException as error:
        clear(output)
        if "/ValidateMetrics'" in str(error):  # the step that Beam names: TFMA compares whatever a metric gave with the bound
            metrics = ", ".join(dict.fromkeys(t.name for t in config.thresholds))
            raise EdgeError(
                f"thresholds on {metrics}: one of these gives no single number, and only a number has a bound; name another"
            ) from error
        raise
    return examples


def clear(folder: str) -> None:
    """Empties a folder: an evaluation that broke off must not look like one."""
    for name in fileio.listdir(folder) if fileio.exists(folder) else ():
        path = posixpath.join(folder, name)
        (fileio.rmtree if fileio.isdir(path) else fileio.remove)(path)


_COUNT = "examples_read"


def _build(
    p: beam.Pipeline, sources: Sequence[tfxio.TFXIO], schema: schema_pb2.Schema, config: GateConfig, paths: ModelPaths, output: str
) -> None:
    tfma_config = eval_config(config)
    models = [
        types.EvalSharedModel(model_path=path, model_name=name, model_type=spec.model_type, is_baseline=spec.is_baseline)
        for name, path in ((CANDIDATE, paths.candidate), (BASELINE, paths.baseline))
        for spec in tfma_config.model_specs
        if spec.name == name
    ]
    tensors = sources[0].TensorAdapterConfig()
    batches = [p | f"Read[{i}]" >> source.BeamSource(batch_size=config.batch_size) for i, source in enumerate(sources)]
    checked = batches | beam.Flatten() | "Check" >> beam.ParDo(_Check(tensors))
    _ = (
        checked
        | "CountRows" >> beam.Map(lambda batch: batch.num_rows)
        | "Sum" >> beam.CombineGlobally(sum)
        | "WriteCount" >> beam.io.WriteToText(f"{output}/{_COUNT}", num_shards=1, shard_name_template="")
    )
    _ = checked | tfma.ExtractEvaluateAndWriteResults(
        eval_config=tfma_config,
        eval_shared_model=models,
        output_path=output,
        schema=schema,
        extractors=tfma.default_extractors(
            eval_shared_model=models,
            eval_config=tfma_config,
            tensor_adapter_config=tensors,
            custom_predict_extractor=predict_extractor(paths, config.time_limit_s, [t.output for t in config.thresholds]),
        ),
    )


class _Check(beam.DoFn):
    """Raises where a batch doesn't fit the schema, in words; TFMA would print the whole batch."""

    def __init__(self, config: tensor_adapter.TensorAdapterConfig) -> None:
        self._config = config

    def setup(self) -> None:
        self._adapter = tensor_adapter.TensorAdapter(self._config)

    def process(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        dense_features(batch, self._adapter)
        yield batch
