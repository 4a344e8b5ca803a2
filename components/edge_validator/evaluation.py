"""The Beam pipeline: examples through both models and TFMA."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa
import tensorflow_model_analysis as tfma
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_model_analysis.api import types
from tfx.dsl.io import fileio
from tfx_bsl.tfxio import tensor_adapter, tfxio

from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.documents import read_bytes
from tfx_edge.components.edge_validator.decisions import deciding
from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE, eval_config
from tfx_edge.components.edge_validator.extractor import predict_extractor
from tfx_edge.components.edge_validator.model_pair import Models
from tfx_edge.components.edge_validator.preprocessing import preprocessing_extractors
from tfx_edge.components.edge_validator.raw_examples import TransformedSource
from tfx_edge.components.edge_validator.sample import parse_sample, sampling
from tfx_edge.components.edge_validator.statistics.compare import STAGE as COMPARED
from tfx_edge.components.edge_validator.statistics.compare import comparing
from tfx_edge.components.edge_validator.tfma_fixes import fix_combiners
from tfx_edge.components.examples import dense_features
from tfx_edge.schemas import EdgeError, GateConfig


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation tells besides TFMA's files.

    Attributes:
        examples: how many were read, counted before TFMA got them.
        sample: some of them, as the models got them: `[n, ...]` each, by feature name.
    """

    examples: int
    sample: Mapping[str, NDArray[Any]]


def evaluate(
    pipeline: AbstractContextManager[beam.Pipeline],
    sources: Sequence[tfxio.TFXIO | TransformedSource],
    schema: schema_pb2.Schema,
    config: GateConfig,
    models: Models,
    output: str,
    sample: int = 0,
) -> Evaluated:
    """Evaluates both models on all examples and writes TFMA's files, or nothing.

    Args:
        pipeline: runs on leaving it.
        sources: of the examples, at least one.
        schema: of the examples.
        config: thresholds, slices and batch size.
        models: the models.
        output: an empty folder.
        sample: how many examples to take along.

    Raises:
        ModelFault: a model can't be loaded or can't predict.
        EdgeError: there are no examples, they don't fit their schema, or a thresholded metric isn't a number.
    """
    try:
        with clean_errors(), pipeline as p:
            _build(p, sources, schema, config, models, output, sample)
        examples = int(_take(f"{output}/{_COUNT}"))
        if examples == 0:
            raise EdgeError(
                f"split {config.split!r}: no examples; a gate that looked at nothing can't bless, evaluate on a split that has some"
            )
    except BaseException as error:
        clear(output)
        if "not found in model signatures" in str(error):
            names = ", ".join(config.preprocessing_function_names)
            raise EdgeError(
                f"preprocessing_function_names {names}: the baseline's SavedModel holds no signature or layer of such a name; "
                "name what it holds"
            ) from error
        if "/ValidateMetrics'" in str(error):  # the step that Beam names: TFMA compares whatever a metric gave with the bound
            metrics = ", ".join(dict.fromkeys(t.name for t in config.thresholds))
            raise EdgeError(
                f"thresholds on {metrics}: one of these gives no single number, and only a number has a bound; name another"
            ) from error
        raise
    return Evaluated(examples, parse_sample(_take(f"{output}/{_SAMPLE}")) if sample else {})


def clear(folder: str) -> None:
    """Empties a folder: an evaluation that broke off must not look like one."""
    for name in fileio.listdir(folder) if fileio.exists(folder) else ():
        path = posixpath.join(folder, name)
        (fileio.rmtree if fileio.isdir(path) else fileio.remove)(path)


def _take(path: str) -> bytes:
    """Reads a file that isn't to stay."""
    content = read_bytes(path)
    fileio.remove(path)
    return content


_COUNT = "examples_read"
_SAMPLE = "sample.npz"


def _build(
    p: beam.Pipeline,
    sources: Sequence[tfxio.TFXIO | TransformedSource],
    schema: schema_pb2.Schema,
    config: GateConfig,
    models: Models,
    output: str,
    sample: int,
) -> None:
    fix_combiners()
    tfma_config = eval_config(config, [f.name for f in schema.feature if f.type == schema_pb2.BYTES])
    shared = [
        types.EvalSharedModel(model_path=path, model_name=name, model_type=spec.model_type, is_baseline=spec.is_baseline)
        for name, path in ((CANDIDATE, models.candidate), (BASELINE, models.baseline))
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
    predict = predict_extractor(models)
    features, *others = tfma.default_extractors(
        eval_shared_model=shared, eval_config=tfma_config, tensor_adapter_config=tensors, custom_predict_extractor=predict
    )
    extractors = [features, *preprocessing_extractors(models.baseline, config.preprocessing_function_names), *others]
    extractors = comparing(extractors, predict.stage_name, config.thresholds, tfma_config.slicing_specs, output)
    extractors = deciding(extractors, COMPARED, config.worst_examples, config.label_features, output)
    if sample:
        extractors = sampling(extractors, predict.stage_name, sample, f"{output}/{_SAMPLE}")
    _ = checked | tfma.ExtractEvaluateAndWriteResults(
        eval_config=tfma_config,
        eval_shared_model=shared,
        output_path=output,
        schema=schema,
        extractors=extractors,
        evaluators=tfma.default_evaluators(
            eval_shared_model=shared, eval_config=tfma_config, schema=schema, random_seed_for_testing=config.seed
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
