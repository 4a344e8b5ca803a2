"""A few of the examples, as the models get them: for what needs no more than that, as latency, targets and errors by operator.

The sample is of the examples whose bytes hash lowest, so it is the same in whatever order, batches and workers they come.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from numpy.typing import NDArray
from tensorflow_model_analysis.extractors import extractor

from tfx_edge.components.documents import write_bytes
from tfx_edge.components.edge_validator.extractor import model_features

_Row = dict[str, NDArray[Any]]
_Ranked = list[tuple[bytes, _Row]]


def sampling(extractors: Sequence[extractor.Extractor], after: str, size: int, path: str) -> list[extractor.Extractor]:
    """TFMA's extractors with one among them that writes up to `size` examples to a file and passes all on.

    Args:
        extractors: as `tfma.default_extractors` gives them.
        after: stage name of a step that gives batches.
        size: of the sample.
        path: for `parse_sample` to read.
    """
    at = [e.stage_name for e in extractors].index(after) + 1
    step = extractor.Extractor(stage_name="SampleExamples", ptransform=_WriteSample(path, size))
    return [*extractors[:at], step, *extractors[at:]]


def parse_sample(content: bytes) -> dict[str, NDArray[Any]]:
    """The examples of a file that `sampling` wrote, `[n, ...]` each, by feature name."""
    with np.load(io.BytesIO(content)) as arrays:
        names = [name.decode() for name in arrays["arr_0"]]
        values = [arrays[f"arr_{i}"] for i in range(1, len(names) + 1)]
    return {name: value.astype(object) if value.dtype.kind == "S" else value for name, value in zip(names, values, strict=True)}


class _WriteSample(beam.PTransform):
    def __init__(self, path: str, size: int) -> None:
        super().__init__()
        self._path = path
        self._size = size

    def expand(self, extracts: beam.PCollection) -> beam.PCollection:
        _ = (
            extracts
            | "Rank" >> beam.FlatMap(_rank, self._size)
            | "Lowest" >> beam.CombineGlobally(_Lowest(self._size))
            | "Write" >> beam.Map(_write, self._path)
        )
        return extracts


def _rank(extracts: Mapping[str, Any], size: int) -> Iterator[_Ranked]:
    features = dict(sorted(model_features(extracts).items()))
    count = len(next(iter(features.values()), ()))
    hashes = [example_digest({name: values[i] for name, values in features.items()}) for i in range(count)]
    lowest = sorted(range(count), key=hashes.__getitem__)[:size]
    yield [(hashes[i], {name: values[i] for name, values in features.items()}) for i in lowest]


def example_digest(row: Mapping[str, Any]) -> bytes:
    """16 bytes that tell one example's features, in the order of the mapping, from another's."""
    digest = hashlib.blake2b(digest_size=16)
    for value in row.values():
        array = np.asarray(value)
        digest.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return digest.digest()


class _Lowest(beam.CombineFn):
    def __init__(self, size: int) -> None:
        self._size = size

    def create_accumulator(self) -> _Ranked:
        return []

    def add_input(self, accumulator: _Ranked, element: _Ranked) -> _Ranked:
        return self.merge_accumulators([accumulator, element])

    def merge_accumulators(self, accumulators: Iterable[_Ranked]) -> _Ranked:
        return sorted((row for ranked in accumulators for row in ranked), key=lambda row: row[0])[: self._size]

    def extract_output(self, accumulator: _Ranked) -> list[_Row]:
        return [row for _, row in accumulator]


def _write(rows: list[_Row], path: str) -> None:
    names = sorted(rows[0]) if rows else []
    columns = [np.stack([row[name] for row in rows]) for name in names]
    buffer = io.BytesIO()  # by position: a feature may be named as an argument of savez
    np.savez(buffer, np.array([name.encode() for name in names], "S"), *(_plain(column) for column in columns))
    write_bytes(path, buffer.getvalue())


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    return np.array(column.tolist(), "S") if column.dtype == object else column
