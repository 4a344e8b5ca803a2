"""The search: the config as asked, then remedies that cost no bytes, then operators at higher precision, then 16-bit activations."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from tfx_edge.litert.search.configs import changed
from tfx_edge.litert.search.mixed import Mixture, smallest_set
from tfx_edge.litert.search.operators import quantized_operators
from tfx_edge.litert.search.reasons import why_met, why_not
from tfx_edge.litert.search.remedies import FITTED, RANGE_METHODS, REMEDIES, Change, without_fitted
from tfx_edge.litert.search.sensitivity import rank
from tfx_edge.litert.search.trials import Candidate, Evaluate, OutOfCandidates, Quantize, Trials
from tfx_edge.schemas import AccuracyTarget, EdgeError, QuantizationConfig, SearchTrial
from tfx_edge.schemas.accuracy import Remedy


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        config: of the smallest model that meets the target; of the nearest where none does.
        trials: every candidate, in the order in which they were tried.
        met: whether the target is met.
        float_metric: of the float flatbuffer.
        metric: of the model of `config`; None where no candidate could be made.
        reason: one sentence: what it took, or why it can't be.
    """

    config: QuantizationConfig
    trials: tuple[SearchTrial, ...]
    met: bool
    float_metric: float
    metric: float | None
    reason: str


def search(
    float_model: bytes,
    config: QuantizationConfig,
    target: AccuracyTarget,
    quantize: Quantize,
    evaluate: Evaluate,
    remedies: Mapping[Remedy, Change] = REMEDIES,
) -> SearchResult:
    """Finds the smallest model that keeps its accuracy. The same arguments give the same trials and the same config.

    A step of `target.escalation` is taken where all before it lost too much. Of the candidates that meet the target the one
    with the fewest bytes after gzip wins, between equals that with the fewest operators at higher precision.

    Args:
        float_model: the float flatbuffer.
        config: where to start, and what is asked if it is good enough.
        target: what may be lost, what may be tried, and how many candidates.
        quantize: a config to the quantized flatbuffer, as a `Maker` does; an EdgeError refuses the candidate, and the search goes on.
        evaluate: a flatbuffer to what it is worth on the search's examples; see `Evaluator`.
        remedies: what the names of the escalation stand for.

    Raises:
        EdgeError: the float flatbuffer itself can't be evaluated.
    """
    trials = Trials(target, quantize, evaluate, evaluate(float_model).metric)
    complete = True
    try:
        _Ladder(float_model, config, target, quantize, remedies, trials).climb()
    except OutOfCandidates:
        complete = False
    return _result(trials, config, target, complete=complete)


class _Ladder:
    """The steps, each from where those before it have led."""

    def __init__(
        self,
        float_model: bytes,
        config: QuantizationConfig,
        target: AccuracyTarget,
        quantize: Quantize,
        remedies: Mapping[Remedy, Change],
        trials: Trials,
    ) -> None:
        self._float_model, self._config, self._target = float_model, config, target
        self._quantize, self._remedies, self._trials = quantize, remedies, trials

    def climb(self) -> None:
        """Takes one step after the other until something meets the target."""
        self._best = self._trials("as_asked", self._config)
        for step in self._target.escalation:
            if any(c.trial.feasible and c.trial.step != "sensitivity" for c in self._trials.tried):
                return
            if step == "mixed":
                self._mix()
            elif step in ("int16x8", "dynamic_range"):
                self._try(step, partial(changed, scheme=step), self._config, ())
            elif step in self._remedies:
                self._remedy(step)

    def _remedy(self, step: Remedy) -> None:
        """Keeps a remedy where it helps, for the steps behind it to build on."""
        replaced = RANGE_METHODS if step in RANGE_METHODS else ()
        remedies = tuple(other for other in self._best.trial.remedies if other not in replaced)
        candidate = self._try(step, self._remedies[step], self._best.config, remedies)
        if candidate is not None and candidate.loss < self._best.loss:
            self._best = candidate

    def _try(self, step: Remedy, change: Change, base: QuantizationConfig, remedies: tuple[Remedy, ...]) -> Candidate | None:
        try:
            config = change(base)
        except EdgeError as error:
            self._trials.refuse(step, base, (*remedies, step), error)
            return None
        return self._trials(step, config, (*remedies, step))

    def _mix(self) -> None:
        kept = tuple(other for other in self._best.trial.remedies if other not in FITTED)
        base = self._trials("mixed", without_fitted(self._best.config), kept)
        refused = bool(base.trial.error)  # it may be for one operator alone, so every operator is looked at
        operators = quantized_operators(self._float_model, None if refused else self._quantize(base.config))
        ranked = rank(self._trials, base, operators)
        if not refused or any(c.trial.step == "sensitivity" and not c.trial.error for c in self._trials.tried):
            smallest_set(Mixture(self._trials, base, self._target.fallback), ranked)


def _result(trials: Trials, config: QuantizationConfig, target: AccuracyTarget, *, complete: bool) -> SearchResult:
    whole = [c for c in trials.tried if c.trial.step != "sensitivity"]
    good = [c for c in whole if c.trial.feasible]
    made = [c for c in whole if not c.trial.error]
    best = min(good, key=lambda c: c.size) if good else min(made, key=lambda c: (c.loss, c.size), default=None)
    return SearchResult(
        config=config if best is None else best.config,
        trials=tuple(c.trial for c in trials.tried),
        met=bool(good),
        float_metric=trials.float_metric,
        metric=None if best is None else best.trial.metric,
        reason=why_met(best, trials, complete=complete) if best and good else why_not(best, trials, target, complete=complete),
    )
