"""What a search came to, in one sentence."""

from tfx_edge.litert.search.trials import Candidate, Trials
from tfx_edge.schemas import AccuracyTarget, SearchTrial


def why_met(best: Candidate, trials: Trials, *, complete: bool) -> str:
    """What it took to meet the target."""
    stopped = "" if complete else ", but max_candidates ended the search, so a smaller one may be there"
    return f"{describe(best.trial)} loses {best.trial.drop:.4g} with {best.trial.gzip_bytes} bytes gzipped{stopped}"


def why_not(best: Candidate | None, trials: Trials, target: AccuracyTarget, *, complete: bool) -> str:
    """Why nothing meets the target, and what would help."""
    count, first = len(trials.tried), trials.tried[0].trial if trials.tried else None
    if best is None:
        return f"none of {count} candidates could be made; the first, {describe(first)}: {first.error}" if first else "nothing was tried"
    cause = _cause(best, trials, target, complete)
    return (
        f"no candidate of {count} keeps within max_drop {target.max_drop:g} of the float model's {target.threshold.title} "
        f"{trials.float_metric:.4f}; the nearest, {describe(best.trial)}, has {best.trial.metric:.4f}; {cause}"
    )


def _cause(best: Candidate, trials: Trials, target: AccuracyTarget, complete: bool) -> str:
    if not complete:
        return f"max_candidates {target.max_candidates} ended the search: allow more"
    mixed = [c for c in trials.tried if c.trial.step == "mixed"]
    alone = [c for c in trials.tried if c.trial.step == "sensitivity" and not c.trial.error]
    if "mixed" not in target.escalation:
        return "escalation leaves out 'mixed', which leaves the operators that lose most in float: add it"
    if not alone or not mixed:
        return "no operator of it can be left at higher precision"
    worst = max(alone, key=lambda c: c.loss)
    costs = f"the most sensitive operator, {worst.trial.operators[0]!r}, costs {worst.trial.drop:.4g} alone"
    everything = max(mixed, key=lambda c: len(c.trial.operators))
    left = (
        f"with all {len(everything.trial.operators)} operators at {target.fallback!r} it still loses {everything.trial.drop:.4g}"
        if not everything.trial.error
        else f"all operators at {target.fallback!r} are refused: {everything.trial.error}"
    )
    io = best.config.io_type
    fix = (
        f"its {io} inputs and outputs do that: set io_type 'float32'"
        if io != "float32"
        else ("set fallback 'float32'" if target.fallback != "float32" else "allow a larger max_drop")
    )
    return f"{left}; {costs}; {fix}"


def describe(trial: SearchTrial) -> str:
    """A trial in a few words.

    >>> from tfx_edge.litert.search.reasons import describe
    >>> from tfx_edge.schemas import SearchTrial
    >>> describe(SearchTrial(step="mixed", scheme="int8", remedies=("percentile", "mixed"), operators=("conv",)))
    'int8 with percentile and 1 operator at higher precision'
    """
    parts: list[str] = [name for name in trial.remedies if name not in ("mixed", "int16x8", "dynamic_range")]
    if trial.operators and trial.step != "sensitivity":
        parts.append(f"{len(trial.operators)} operator{'s' if len(trial.operators) > 1 else ''} at higher precision")
    return f"{trial.scheme} with {' and '.join(parts)}" if parts else trial.scheme
