"""Candidates of a search: each made and measured once, with what came of it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tfx_edge.litert.inspect import digest, gzip_size
from tfx_edge.litert.search.evaluator import Measured
from tfx_edge.schemas import AccuracyTarget, EdgeError, QuantizationConfig, SearchTrial
from tfx_edge.schemas.accuracy import Remedy, Step

Quantize = Callable[[QuantizationConfig], bytes]
Evaluate = Callable[[bytes], Measured]


class OutOfCandidates(Exception):
    """`max_candidates` were tried."""


@dataclass(frozen=True)
class Candidate:
    """A config that was tried.

    Attributes:
        config: what `quantize` was given.
        trial: what came of it.
        noise: of its outputs, see `Measured`; infinite where nothing came of it.
    """

    config: QuantizationConfig
    trial: SearchTrial
    noise: float

    @property
    def loss(self) -> tuple[float, float]:
        """How bad it is: by the drop, and between equals by the noise. A candidate of which nothing came is worse than any."""
        return math.inf if self.trial.drop is None else self.trial.drop, self.noise

    @property
    def size(self) -> tuple[int, int]:
        """What it costs, if it is feasible: bytes after gzip, and between equals the operators at higher precision."""
        return self.trial.gzip_bytes or 0, len(self.trial.operators)


class Trials:
    """Makes and measures candidates, and keeps the table of them.

    Attributes:
        tried: every candidate in the order of the search, each once.
        float_metric: of the float flatbuffer.
    """

    def __init__(self, target: AccuracyTarget, quantize: Quantize, evaluate: Evaluate, float_metric: float) -> None:
        """Starts an empty table.

        Args:
            target: what a candidate may lose, and how many there may be.
            quantize: a config to the flatbuffer; an EdgeError refuses the candidate.
            evaluate: a flatbuffer to what it is worth; an EdgeError refuses the candidate.
            float_metric: of the float flatbuffer.
        """
        self.tried: list[Candidate] = []
        self.float_metric = float_metric
        self._target, self._quantize, self._evaluate = target, quantize, evaluate
        self._by_config: dict[str, Candidate] = {}
        self._by_digest: dict[str, Measured] = {}

    def __call__(self, step: Step, config: QuantizationConfig, remedies: Sequence[Remedy] = (), operators: Sequence[str] = ()) -> Candidate:
        """Tries a config, or tells what came of it before.

        Args:
            step: why it is tried.
            config: what to quantize by.
            remedies: what of the escalation is in it.
            operators: those that the step is about, see `SearchTrial`.

        Raises:
            OutOfCandidates: it would be one too many.
        """
        key = config.to_json()
        if key not in self._by_config:
            self._by_config[key] = self._add(config, self._trial(step, config, remedies, operators))
        return self._by_config[key]

    def refuse(self, step: Step, config: QuantizationConfig, remedies: Sequence[Remedy], error: EdgeError) -> None:
        """Notes that a step can't be taken from a config."""
        trial = SearchTrial(step=step, scheme=config.scheme, remedies=tuple(remedies), error=str(error))
        self._add(config, (trial, math.inf))

    def _add(self, config: QuantizationConfig, result: tuple[SearchTrial, float]) -> Candidate:
        candidate = Candidate(config, *result)
        self.tried.append(candidate)
        return candidate

    def _trial(
        self, step: Step, config: QuantizationConfig, remedies: Sequence[Remedy], operators: Sequence[str]
    ) -> tuple[SearchTrial, float]:
        if len(self.tried) >= self._target.max_candidates:
            raise OutOfCandidates
        trial = SearchTrial(step=step, scheme=config.scheme, remedies=tuple(remedies), operators=tuple(operators))
        try:
            flatbuffer = self._quantize(config)
            measured = self._measure(flatbuffer)
        except EdgeError as error:
            return trial.model_copy(update={"error": str(error)}), math.inf
        feasible = self._target.keeps(self.float_metric, measured.metric)
        values = {
            "metric": measured.metric,
            "drop": self._target.drop(self.float_metric, measured.metric),
            "sqnr_db": 10 * math.log10(1 / measured.noise) if 0 < measured.noise < math.inf else None,
            "size_bytes": len(flatbuffer),
            "gzip_bytes": gzip_size(flatbuffer) if feasible and step != "sensitivity" else None,  # half of what a small candidate takes
            "feasible": feasible,
        }
        return trial.model_copy(update=values), measured.noise

    def _measure(self, flatbuffer: bytes) -> Measured:
        """Different configs may give the same bytes."""
        key = digest(flatbuffer)
        if key not in self._by_digest:
            self._by_digest[key] = self._evaluate(flatbuffer)
        return self._by_digest[key]
