"""One target: the tool of its profile, then its budgets.

report = check(model, Target(profile="tflm", max_arena_bytes=65536), {"image": images})
report.reasons  # empty: the model suits the target
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.targets.npu import compile_npu
from tfx_edge.litert.targets.outcome import Outcome, shortened
from tfx_edge.litert.targets.rules import judge
from tfx_edge.litert.targets.tflm import run_tflm
from tfx_edge.litert.targets.vela import compile_vela
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.target import Target, TargetReport
from tfx_edge.schemas.versions import runtime_supports

# What comes of following an index or a name in a flatbuffer that leads nowhere.
_MALFORMED = (LookupError, AttributeError, TypeError, ValueError, struct.error)


def check(
    model: bytes, target: Target, features: Mapping[str, NDArray[Any]], *, time_limit_s: float = 120.0, compiled: Path | None = None
) -> TargetReport:
    """Judges a model for a target. Whatever is wrong with the model, or missing on this machine, becomes a reason.

    LiteRT runs the model in this process for `litert` and `tflite-micro`: try a model from an unknown source in a child process first.

    Args:
        model: a flatbuffer.
        target: the device and its budgets.
        features: examples, `[n, ...]` each, by feature name; up to 16 are run, by tools that run the model.
        time_limit_s: seconds that the tool may take.
        compiled: where to write what the tool compiles for the device, if it compiles anything: Vela's flatbuffer.

    Raises:
        OSError: `compiled` can't be written.
    """
    profile = target.resolve()
    try:
        outcome = _run(model, target, features, time_limit_s)
    except EdgeError as error:
        outcome = Outcome(profile.tool, reasons=(str(error),))
    except _MALFORMED as error:
        outcome = Outcome(profile.tool, reasons=(f"a damaged LiteRT flatbuffer ({type(error).__name__}: {error}); export the model again",))
    if compiled is not None and outcome.compiled is not None:
        compiled.write_bytes(outcome.compiled)
    # Where the tool couldn't judge the model that is the reason, and that nothing was measured no news.
    over = () if outcome.reasons and not outcome.measurements else _over_budget(target, outcome)
    reasons = tuple(f"{profile.name}: {reason}" for reason in (*outcome.reasons, *over))
    return TargetReport(profile=profile.name, tool=outcome.tool, measurements=outcome.measurements, ops=outcome.ops, reasons=reasons)


def _run(model: bytes, target: Target, features: Mapping[str, NDArray[Any]], time_limit_s: float) -> Outcome:
    profile = target.resolve()
    inspect.parse(model)  # what isn't a flatbuffer goes to no tool
    if profile.tool == "tflite-micro":
        return run_tflm(model, target, features, time_limit_s)
    if profile.tool == "vela":
        return compile_vela(model, target, time_limit_s)
    if profile.tool == "rules":
        return judge(model, profile)
    if profile.tool == "aot":
        return compile_npu(model, target, time_limit_s)
    return _run_litert(model, features)


def _run_litert(model: bytes, features: Mapping[str, NDArray[Any]]) -> Outcome:
    needs = inspect.minimum_runtime(model)
    if not runtime_supports(needs):
        newer = f"needs TensorFlow Lite {needs}, newer than {inspect.runtime()}; install a newer ai-edge-litert"
        return Outcome(inspect.runtime(), reasons=(newer,))
    Runner(model)({name: values[:16] for name, values in features.items()})
    return Outcome(inspect.runtime())


def _over_budget(target: Target, outcome: Outcome) -> Iterator[str]:
    for measurement, (budget, bound) in target.limits().items():
        if measurement.startswith("parity_"):
            continue  # held where it is measured, an output at a time
        value = outcome.measurements.get(measurement)
        if value is None:
            yield f"{budget} {bound:g} is set, and {measurement} could not be measured"
        elif value > bound if budget.startswith("max_") else value < bound:
            blame = [f"{op.operator} ({op.count}): {op.reason}" for op in outcome.ops if op.reason]
            about = f"; {shortened(blame)}" if blame and measurement in ("unsupported_ops", "npu_share") else ""
            yield f"{measurement} {value:.10g}, {budget} is {bound:.10g}{about}"
