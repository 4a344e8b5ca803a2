"""Runs a float flatbuffer over examples and takes statistics of its activations."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from tfx_edge.litert.activation_statistics import BINS, NOTHING, Statistics, TensorStatistics, bin_counts, merge
from tfx_edge.litert.activations import activations
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.ranges import RangeMethod

PARTS = 8
"""Disjoint parts of the data, by a hash of each example: averages are taken over them, and halves of them must agree."""

_HISTOGRAM: frozenset[RangeMethod] = frozenset({"percentile", "mse", "entropy"})

Arrays = Mapping[str, NDArray[Any]]


class Collector:
    """A loaded float model that gives the statistics of its activations over examples.

    XNNPACK, through which LiteRT runs it, computes a row alike in whatever batch it stands, so the statistics don't depend on how
    the examples are cut into batches, nor on their order.
    """

    def __init__(
        self,
        model: bytes,
        methods: frozenset[RangeMethod] = frozenset({"min_max"}),
        parts: int = PARTS,
        batch_size: int = 32,
        name: str = "the float flatbuffer",
    ) -> None:
        """Loads a model.

        Args:
            model: a float flatbuffer.
            methods: what ranges are to be taken by; `percentile`, `mse` and `entropy` need histograms.
            parts: into how many the data falls.
            batch_size: examples in one run. Those of a part are held until they are so many: a run of another size makes LiteRT lay
                its memory out anew.
            name: what to call the model in an error.

        Raises:
            EdgeError: LiteRT can't load it, or its tensors' names aren't unique.
        """
        self._name, self._batch_size = name, batch_size
        self._histogram = bool(methods & _HISTOGRAM)
        self._tensors = activations(model)
        self._runner = Runner(model, name=name, observe=self._read)
        self._waiting: list[list[Arrays]] = [[] for _ in range(parts)]
        self._tallies = [_Tallies() for _ in range(parts)]
        self._into = self._tallies[0]

    def __call__(self, features: Arrays, source: str = "the calibration data") -> tuple[Statistics, ...]:
        """The statistics of some examples alone; see `add` and `finish`."""
        self.add(features, source)
        return self.finish(source)

    def add(self, features: Arrays, source: str = "the calibration data") -> None:
        """Takes examples up.

        Args:
            features: `[n, ...]` each, by feature name; may hold more than the model takes.
            source: what to call the examples in an error.

        Raises:
            EdgeError: the features don't fit the model's inputs, or an activation took NaN or Inf: the first such tensor is named.
        """
        inputs = self._runner.raw_inputs(features, source)
        part_of = _parts(inputs, len(self._waiting))
        for part, waiting in enumerate(self._waiting):
            if (part_of == part).any():
                waiting.append({name: values[part_of == part] for name, values in inputs.items()})
            if sum(map(_count, waiting)) >= self._batch_size:
                self._run(part, source, everything=False)

    def finish(self, source: str = "the calibration data") -> tuple[Statistics, ...]:
        """The statistics of each part of all that was added since the last time.

        Raises:
            EdgeError: see `add`.
        """
        for part in range(len(self._waiting)):
            self._run(part, source, everything=True)
        tallies, self._tallies = self._tallies, [_Tallies() for _ in self._tallies]
        return tuple(tally.result() for tally in tallies)

    def _run(self, part: int, source: str, *, everything: bool) -> None:
        """Runs the examples of a part that wait: those that fill whole steps, or all."""
        waiting, self._waiting[part] = self._waiting[part], []
        if not waiting:
            return
        joined = {name: np.concatenate([arrays[name] for arrays in waiting]) for name in waiting[0]}
        size = self._step_size(joined)
        self._into = self._tallies[part]
        try:
            for at in range(0, _count(joined), size):
                step = {name: values[at : at + size] for name, values in joined.items()}
                if _count(step) < size and not everything:
                    self._waiting[part] = [step]
                    return
                self._into.examples += _count(step)
                if self._runner.batch_size:  # filled up with copies of one example, which change no share
                    step = {name: np.repeat(values, self._runner.batch_size, axis=0) for name, values in step.items()}
                self._runner(step, source)
        except EdgeError:
            self._waiting = [[] for _ in self._waiting]
            self._tallies = [_Tallies() for _ in self._tallies]
            raise

    def _step_size(self, inputs: Arrays) -> int:
        """Examples in one run, so that the runner needn't fill it up with copies of its last one."""
        return 1 if self._runner.batch_size else min(self._batch_size, self._runner.rows_at_once(inputs))

    def _read(self, interpreter: Interpreter) -> None:
        for name, index in self._tensors.items():
            try:
                values = interpreter.get_tensor(index)
            except ValueError:  # LiteRT laid out no memory for it, as for what only another branch computes
                continue
            if values.size:
                self._tally(name, values)

    def _tally(self, name: str, values: NDArray[np.float32]) -> None:
        low, high = float(np.min(values)), float(np.max(values))
        if not np.isfinite([low, high]).all():
            raise EdgeError(
                f"{self._name}: tensor {name!r} took {'NaN' if np.isnan(low) else 'Inf'} on the calibration data, so it has no range; "
                "mend the feature or the weight that it comes from"
            )
        self._into.add(name, low, high, bin_counts(values) if self._histogram else None)


class _Tallies:
    """The statistics of one part while they are taken."""

    def __init__(self) -> None:
        self.examples = 0
        self._ends: dict[str, tuple[float, float]] = {}
        self._counts: dict[str, NDArray[np.int64]] = {}

    def add(self, name: str, low: float, high: float, counts: NDArray[np.int64] | None) -> None:
        before = self._ends.get(name, (low, high))
        self._ends[name] = min(before[0], low), max(before[1], high)
        if counts is not None:
            self._counts[name] = self._counts.get(name, np.zeros(BINS, np.int64)) + counts

    def result(self) -> Statistics:
        return Statistics({name: self._tensor(name) for name in sorted(self._ends)}, self.examples)

    def _tensor(self, name: str) -> TensorStatistics:
        low, high = self._ends[name]
        if name not in self._counts:
            return TensorStatistics(low, high)
        bins = np.flatnonzero(self._counts[name])
        return TensorStatistics(low, high, bins.astype(np.uint16), self._counts[name][bins])


def merge_parts(batches: Iterable[tuple[Statistics, ...]]) -> tuple[Statistics, ...]:
    """Merges what batches gave, part by part; of nothing come empty parts."""
    return tuple(merge(part) for part in zip(*batches, strict=True)) or (NOTHING,) * PARTS


def _count(arrays: Arrays) -> int:
    return len(next(iter(arrays.values())))


def _parts(inputs: Arrays, parts: int) -> NDArray[np.int64]:
    """The part that each example belongs to, by its content."""
    columns = [inputs[name] for name in sorted(inputs)]
    return np.array([_hash([column[i] for column in columns]) % parts for i in range(_count(inputs))], np.int64)


def _hash(values: list[Any]) -> int:
    digest = hashlib.blake2b(digest_size=8)
    for value in values:
        array = np.asarray(value)
        digest.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return int.from_bytes(digest.digest(), "little")
