"""The search: the oracle proposes values, a trial of them is made or read, and the oracle learns what it is worth.

A killed search is taken up by replay: proposals depend on the seed and on the scores before, so the same search proposes the
same again, and each trial that was whole is answered from its file. KerasTuner's own reload loses the state of its random
generator (Bayesian optimization) or of its grid, and would go on with other proposals.
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import keras_tuner
from absl import logging
from keras_tuner.engine.base_tuner import BaseTuner
from sklearn.exceptions import ConvergenceWarning

from tfx_edge.components.compression_tuner.objective import judge, score
from tfx_edge.components.compression_tuner.space import SCORE, describe, make_oracle, plain_values
from tfx_edge.components.compression_tuner.trial_store import TrialStore
from tfx_edge.schemas import EdgeError, SearchConfig, SearchReport, Techniques, TrialResult
from tfx_edge.schemas.search import Value, with_values

Make = Callable[[Techniques, str], TrialResult]


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        report: every trial, and the best.
        techniques: of the best.
        kept: folder with what the best trial made.
        tuner: as TFX's Tuner writes results from it.
    """

    report: SearchReport
    techniques: Techniques
    kept: str
    tuner: BaseTuner


def search(config: SearchConfig, reference: TrialResult, make: Make, store: TrialStore) -> Found:
    """Searches until `max_trials` are done, the space is exhausted, or the time is over.

    Args:
        config: what to search, and what is best.
        reference: the float model's measurements.
        make: makes and measures the edge model of techniques, and leaves what is to be kept of it in a local folder. An EdgeError
            makes a failed trial; any other exception ends the search.
        store: where trials are kept.

    Raises:
        EdgeError: no trial is within the budget; the nearest is named.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:
        # The tuner only lends its results' form: its own loop takes any exception for a failed trial and prints.
        tuner = BaseTuner(make_oracle(config), directory=scratch, project_name="oracle")
        trials: dict[str, TrialResult] = {}
        best: TrialResult | None = None
        while (proposal := _propose(tuner)) is not None:
            values = plain_values(proposal)
            known = trials.get(repr(values)) or store.read(values)
            over = config.time_limit_s is not None and time.monotonic() - started > config.time_limit_s
            if trials and known is None and over:
                logging.info("Search: stopped after %d trials, time_limit_s is over.", len(trials))
                break
            result = known or _try(config, reference, values, make, store, best)
            trials.setdefault(repr(values), result)
            if _better(result, best, config):
                best = result
            _tell(tuner.oracle, proposal, result, reference, config)
            logging.info("Search: trial %d of %d, %s: %s", len(trials), config.max_trials, describe(result), _outcome(result, config))
        if best is None:
            raise EdgeError(_none_feasible(list(trials.values()), reference, config))
        if store.kept(best.values) is None:  # it was not the best of an earlier, longer search
            _try(config, reference, best.values, make, store, None)
        kept = store.kept(best.values)
        if kept is None:
            raise RuntimeError(f"the trial {describe(best)} can't be repeated")
        report = SearchReport(config=config, reference=reference, best=best.values, trials=tuple(trials.values()))
        return Found(report, with_values(config.techniques, best.values), kept, tuner)


def _propose(tuner: BaseTuner) -> keras_tuner.engine.trial.Trial | None:
    """The next trial; None at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few trials never determine a Gaussian process well
        trial = tuner.oracle.create_trial(tuner.tuner_id)
    return trial if trial.status == keras_tuner.engine.trial.TrialStatus.RUNNING else None


def _try(
    config: SearchConfig, reference: TrialResult, values: dict[str, Value], make: Make, store: TrialStore, best: TrialResult | None
) -> TrialResult:
    """Runs a trial and stores it, what it made only where it is the best so far."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tfx-edge-") as folder:
        try:
            result = judge(make(with_values(config.techniques, values), folder), reference, config.threshold)
        except EdgeError as error:
            result = TrialResult(values=values, seconds=0, error=str(error))
        result = result.model_copy(update={"values": values, "seconds": round(time.monotonic() - started, 3)})
        better = _better(result, best, config)
        if better:
            store.keep(values, folder)
    store.write(result)
    if better and best is not None:
        store.drop(best.values)
    return result


def _tell(
    oracle: keras_tuner.Oracle, proposal: keras_tuner.engine.trial.Trial, result: TrialResult, reference: TrialResult, config: SearchConfig
) -> None:
    if result.error:
        proposal.status, proposal.message = keras_tuner.engine.trial.TrialStatus.FAILED, result.error
    else:
        oracle.update_trial(proposal.trial_id, {SCORE: score(result, reference, config)})
        proposal.status = keras_tuner.engine.trial.TrialStatus.COMPLETED
    oracle.end_trial(proposal)


def _better(result: TrialResult, best: TrialResult | None, config: SearchConfig) -> bool:
    """Whether a trial takes the lead; of equals the first keeps it."""
    return result.feasible and (best is None or getattr(result, config.objective) < getattr(best, config.objective))


def _outcome(result: TrialResult, config: SearchConfig) -> str:
    if result.error:
        return result.error
    verdict = "within" if result.feasible else "beyond"
    return f"{config.objective} {getattr(result, config.objective):g}, {config.threshold.title} {result.metric:.4f}, {verdict} the budget"


def _none_feasible(trials: list[TrialResult], reference: TrialResult, config: SearchConfig) -> str:
    threshold, measured = config.threshold, [t for t in trials if t.drop is not None]
    if not measured:
        first = f"; the first, {describe(trials[0])}: {trials[0].error}" if trials else ""
        return f"CompressionTuner: none of {len(trials)} trials gave a model{first}"
    nearest = min(measured, key=lambda t: t.drop or 0.0)
    failed = f", {len(trials) - len(measured)} of which failed" if len(measured) < len(trials) else ""
    return (
        f"CompressionTuner: no trial of {len(trials)}{failed} keeps within max_drop {threshold.max_drop:g} of the float model's "
        f"{threshold.title} {reference.metric:.4f}; the nearest, {describe(nearest)}, has {nearest.metric:.4f}; "
        "widen the space, train for longer, or allow more"
    )
