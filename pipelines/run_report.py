"""A run's report: what ML Metadata and the artifacts tell of it, and of the runs before it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from tfx_edge.pipelines.run_records import Run, Runs, open_runs
from tfx_edge.schemas import (
    Config,
    EdgeError,
    GateReport,
    JudgedModel,
    LineageArtifact,
    LineageStep,
    Manifest,
    PairedDecisions,
    PastRun,
    QuantizationPlan,
    RunReport,
    SearchReport,
    SelectionReport,
    SparsityReport,
)

_T = TypeVar("_T", bound=Config)
_PAST = 100  # runs


def read_run(metadata_db: Path, pipeline: str | None = None, run_id: str | None = None) -> RunReport:
    """Reads a run from an SQLite metadata file and its artifacts, wherever these lie.

    Args:
        metadata_db: the file.
        pipeline: name of the pipeline; None where there is only one.
        run_id: of the run; None: the latest in which a gate judged a model.

    Raises:
        EdgeError: there is no such pipeline or run, no gate judged a model in it, or an artifact's document can't be read.
    """
    with open_runs(metadata_db, pipeline) as runs:
        if run_id is not None and run_id not in runs.ids:
            raise EdgeError(f"run {run_id!r}: pipeline {runs.pipeline!r} has {', '.join(runs.ids[-5:])}; name one of its runs")
        wanted = [run_id] if run_id is not None else list(reversed(runs.ids))
        run = next((run for run in map(runs.read, wanted) if any(map(_is_gate, run.steps))), None)
        if run is None:
            raise EdgeError(
                f"pipeline {runs.pipeline!r}: no EdgeValidator finished in {run_id or 'any run'}; a report is made of what it wrote"
            )
        return _report(run, runs)


def _report(run: Run, runs: Runs) -> RunReport:
    selection = _first(run.steps, "selection.json", SelectionReport)
    models = [_judged(step, run.steps) for step in run.steps if _is_gate(step)]
    if not any(models):
        raise EdgeError(f"run {run.run_id!r}: its report.json is gone from {_output(_gates(run)[0], 'report').uri}; run the gate again")
    best = None if selection is None else selection.chosen
    until = runs.ids[: runs.ids.index(run.run_id) + 1][-_PAST:]
    return RunReport(
        pipeline=runs.pipeline,
        run_id=run.run_id,
        started=run.started,
        models=tuple(sorted((m for m in models if m is not None), key=lambda m: (m.uri != best, not m.report.blessed))),
        search=_first(run.steps, "search.json", SearchReport),
        selection=selection,
        lineage=run.steps,
        history=tuple(past for run_id in until for past in _past(run if run_id == run.run_id else runs.read(run_id))),
    )


def _judged(gate: LineageStep, steps: Sequence[LineageStep]) -> JudgedModel | None:
    """The model that a gate judged; None where its report is gone."""
    report = _document(_output(gate, "report"), "report.json", GateReport)
    if report is None:
        return None
    model = next(a for a in gate.inputs if a.key == "model")
    made = next((step for step in steps if any(a.id == model.id for a in step.outputs)), None)
    before = () if made is None else made.inputs
    plan = next((a for a in before if a.key == "quantization_plan"), None)
    source = next((a for a in before if a.key == "float_model"), None)
    evaluation = next((a for a in gate.outputs if a.key == "evaluation"), None)
    missing: dict[str, str] = {}
    decisions = _document(evaluation, "decisions.json", PairedDecisions)
    if decisions is None and report.metrics:
        missing["decisions"] = "the evaluation has no decisions.json: an older EdgeValidator wrote it, or it is gone."
    manifest = _document(model, "edge/manifest.json", Manifest)
    if manifest is None:
        missing["manifest"] = f"no edge/manifest.json at {model.uri}; TFLiteExporter writes one."
    plan_document = _document(plan, "plan.json", QuantizationPlan)
    if plan is not None and plan_document is None:
        missing["plan"] = f"plan.json is gone from {plan.uri}."
    return JudgedModel(
        name=gate.component.removeprefix("EdgeValidator.") or gate.component,
        uri=model.uri,
        report=report,
        decisions=decisions,
        manifest=manifest,
        plan=plan_document,
        sparsity=_document(source, "sparsity.json", SparsityReport),
        missing=missing,
    )


def _past(run: Run) -> list[PastRun]:
    """The verdicts of one run, one for each of its gates."""
    gates = _gates(run)
    if not gates:
        return [PastRun(run_id=run.run_id, validator="none", started=run.started, state="no verdict", note="no gate finished in it")]
    return [_verdict(run, gate) for gate in gates]


def _verdict(run: Run, gate: LineageStep) -> PastRun:
    report = _document(_output(gate, "report"), "report.json", GateReport)
    if report is None:
        blessed = next((run.blessed.get(a.id) for a in gate.outputs if a.key == "blessing"), None)
        return PastRun(
            run_id=run.run_id,
            validator=gate.component,
            started=run.started,
            state="no verdict" if blessed is None else "blessed" if blessed else "not blessed",
            note="its report.json is gone",
        )
    metric = report.config.thresholds[0].title
    overall = next((m for m in report.metrics if m.metric == metric and m.slice == "Overall"), None)
    return PastRun(
        run_id=run.run_id,
        validator=gate.component,
        started=run.started,
        state="blessed" if report.blessed else "not blessed",
        metric=metric,
        baseline=None if overall is None else overall.baseline,
        candidate=None if overall is None else overall.candidate,
        size_bytes=report.size_bytes,
        gzip_bytes=report.gzip_bytes,
        note="the model of an earlier run" if gate.state == "CACHED" else "",
    )


def _gates(run: Run) -> list[LineageStep]:
    return [step for step in run.steps if _is_gate(step)]


def _is_gate(step: LineageStep) -> bool:
    """Whether a step is an EdgeValidator that finished: what it writes tells, whatever its id."""
    return {"report", "evaluation", "blessing"} <= {a.key for a in step.outputs} and step.state in ("COMPLETE", "CACHED")


def _output(step: LineageStep, key: str) -> LineageArtifact:
    return next(a for a in step.outputs if a.key == key)


def _first(steps: Sequence[LineageStep], file: str, kind: type[_T]) -> _T | None:
    """The first document of a name among the run's reports."""
    reports = (a for step in steps for a in step.outputs if a.type == "tfx_edge.EdgeReport")
    return next((found for a in reports if (found := _document(a, file, kind)) is not None), None)


def _document(artifact: LineageArtifact | None, file: str, kind: type[_T]) -> _T | None:
    """A document of an artifact; None where there is no such file.

    Raises:
        EdgeError: there is one, and it is none of this kind.
    """
    from tfx.dsl.io import fileio

    from tfx_edge.components.documents import read_bytes

    path = None if artifact is None else f"{artifact.uri}/{file}"
    if path is None or not fileio.exists(path):
        return None
    try:
        return kind.from_json(read_bytes(path))
    except EdgeError as error:
        raise EdgeError(f"{path}: {error}") from error
