"""How a model was made, as parts of a page: the plan, and where it comes from."""

from tfx_edge.report.numbers import NOTHING, cell, number, shortened, text
from tfx_edge.report.parts import Cell, Facts, Lines, Part, Section, Table, cut
from tfx_edge.schemas import JudgedModel, QuantizationPlan, RunReport

_ROWS = 200


def plan_section(model: JudgedModel) -> Section:
    """What turned the float flatbuffer into the quantized one."""
    plan = model.plan
    if plan is None:
        why = model.missing.get("plan", "the run has no Quantizer before this model.")
        return Section("plan", "Plan", absent=(f"Plan: {why}",))
    parts: list[Part] = [Facts(_plan_facts(plan))]
    if plan.decision:
        parts.append(Lines("Decision of the search", (shortened(plan.decision, 1000),)))
    if plan.warnings:
        parts.append(Lines("Warnings", tuple(shortened(w, 1000) for w in plan.warnings[:_ROWS])))
    if plan.size_reason:
        parts.append(Lines("Why it isn't smaller", (plan.size_reason,)))
    if plan.float_ops:
        shown, note = cut(plan.float_ops, _ROWS, "operators")
        rows = tuple((text(op.op), text(op.tensor), text(op.reason)) for op in shown)
        parts.append(Table("Operators that stay in float", ("operator", "output", "why"), rows, note=note))
    if plan.trials:
        tried, note = cut(plan.trials, _ROWS, "trials")
        trials = tuple(
            (
                cell(i, 0),
                text(f"{t.step} {t.scheme}"),
                text(", ".join(t.remedies)),
                cell(t.metric),
                cell(t.drop, sign=True),
                cell(t.size_bytes, 0),
                text("kept" if t.feasible else t.error or "lost too much", "" if t.feasible else "bad"),
            )
            for i, t in enumerate(tried, start=1)
        )
        columns = ("#", "step", "remedies", "metric", "drop", "bytes", "result")
        parts.append(Table("Trials of the accuracy target", columns, trials, frozenset({0, 3, 4, 5}), note))
    return Section("plan", "Plan", tuple(parts))


def _plan_facts(plan: QuantizationPlan) -> tuple[tuple[str, str], ...]:
    config = plan.config
    rules = ", ".join(f"{rule.scheme} for {rule.operator} {rule.tensor}" for rule in config.rules)
    return (
        ("scheme", config.scheme),
        ("inputs and outputs", config.io_type),
        ("method", {"ptq": "after training", "qat": "by training (QAT)"}[plan.method]),
        ("granularity", config.granularity),
        ("carried out by", plan.backend if plan.backend_reason is None else f"{plan.backend}: {plan.backend_reason}"),
        ("ranges by", config.ranges.method),
        ("rules", rules or "none"),
        ("corrections", ", ".join(c.kind for c in config.corrections) or "none"),
        ("calibration data", plan.calibration_digest or "none"),
    )


def origin_section(model: JudgedModel) -> Section:
    """The digests and the software of one model."""
    manifest = model.manifest
    facts = [("flatbuffer", model.report.model_digest or NOTHING), ("judged by", model.report.runtime)]
    absent = []
    if manifest is None:
        absent.append(f"Manifest: {model.missing.get('manifest', 'the model came without.')}")
    else:
        facts += [
            ("float model", manifest.source_model_digest or NOTHING),
            ("float flatbuffer", manifest.float_model_digest),
            ("plan", manifest.plan_digest or "none"),
            ("oldest runtime", manifest.minimum_runtime or NOTHING),
            ("inputs", "; ".join(f"{s.name} {s.dtype} {list(s.shape)}" for s in manifest.signature.inputs)),
            ("outputs", "; ".join(f"{s.name} {s.dtype} {list(s.shape)}" for s in manifest.signature.outputs)),
        ]
        if manifest.made_with is not None:
            made = manifest.made_with
            facts.append(("made with", f"tfx-edge {made.tfx_edge}, TFX {made.tfx}, TensorFlow {made.tensorflow}, LiteRT {made.litert}"))
        facts += [
            (name, value) for name, value in (("name", manifest.name), ("version", manifest.version), ("author", manifest.author)) if value
        ]
    operators = ", ".join(f"{name} {count}" for name, count in sorted(model.report.operators.items()))
    facts.append(("operators", operators or NOTHING))
    if model.uri is not None:
        facts.append(("lies at", model.uri))
    return Section("origin", "Origin", (Facts(tuple(facts)),), tuple(absent))


def lineage_section(run: RunReport) -> Section:
    """The components of the run, with what each read and wrote."""
    if not run.lineage:
        why = run.missing.get("lineage", "this is a gate's report alone, without the run that it comes from.")
        return Section("lineage", "Lineage", absent=(f"Lineage: {why}",))
    by_id = {artifact.id: step.component for step in run.lineage for artifact in step.outputs}
    steps = run.lineage[:_ROWS]
    rows = tuple(
        (
            cell(i, 0),
            text(step.component),
            text(step.state.lower(), "bad" if step.state == "FAILED" else ""),
            Cell(NOTHING if step.seconds is None else number(step.seconds, 1), step.seconds),
            text(", ".join(f"{a.key} of {by_id[a.id]}" if a.id in by_id else f"{a.key} (#{a.id})" for a in step.inputs)),
            text(", ".join(a.key for a in step.outputs)),
        )
        for i, step in enumerate(steps, start=1)
    )
    components = Table(
        "Components in the order in which they began", ("#", "component", "state", "seconds", "reads", "writes"), rows, frozenset({0, 3})
    )
    written = [(step.component, artifact) for step in steps for artifact in step.outputs]
    shown, note = cut(written, _ROWS, "artifacts")
    artifacts = Table(
        "What they wrote",
        ("id", "component", "output", "type", "place"),
        tuple((cell(a.id, 0), text(component), text(a.key), text(a.type), text(a.uri)) for component, a in shown),
        frozenset({0}),
        note,
    )
    return Section("lineage", "Lineage", (components, artifacts))
