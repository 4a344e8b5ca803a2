"""Where the two models decide otherwise, as parts of a page: the confusion matrices' difference, and the worst examples."""

from collections.abc import Sequence

from tfx_edge.report import charts
from tfx_edge.report.images import data_uri
from tfx_edge.report.numbers import cell, number, shortened, text
from tfx_edge.report.parts import Card, Cards, Cell, Chart, Facts, Part, Section, Table
from tfx_edge.schemas import ConfusionMatrix, Disagreement, JudgedModel, OutputDecisions
from tfx_edge.schemas.statistics import FlipRule

_GRID = 25  # classes, of which every field is drawn, an empty one too


def disagreements_section(model: JudgedModel) -> Section:
    """Confusion matrices and examples of each output."""
    title = "Disagreements"
    if model.decisions is None:
        why = model.missing.get("decisions", "the gate kept none of the models' decisions, since they couldn't be evaluated.")
        return Section("disagreements", title, absent=(f"Confusion matrices and worst disagreements: {why}",))
    parts: list[Part] = []
    absent: list[str] = []
    for output in model.decisions.outputs:
        of = f" of output {output.output}" if output.output is not None else ""
        names = _names(model, output)
        if output.confusion is None:
            absent.append(f"Confusion matrix{of}: none, since {output.no_confusion}.")
        else:
            parts.append(_confusion(output.confusion, names, of))
        if output.worst:
            parts.append(Cards(tuple(_card(d, names, output.rule, of) for d in output.worst)))
        else:
            absent.append(f"Worst disagreements{of}: {_no_worst(model, output)}")
    return Section("disagreements", title, tuple(parts), tuple(absent), "The examples on which float and edge model are furthest apart.")


def _no_worst(model: JudgedModel, output: OutputDecisions) -> str:
    if model.report.config.worst_examples == 0:
        return "the gate's worst_examples is 0, so it keeps none."
    if output.rule == "values":
        return "the predictions aren't real numbers."
    return "none kept: the predictions are equal on every example, or the model has more than four outputs."


def _names(model: JudgedModel, output: OutputDecisions) -> tuple[str, ...]:
    """The classes' names, where the manifest has as many as the output has classes; else their numbers."""
    count = 0 if output.confusion is None else len(output.confusion.baseline)
    labels = () if model.manifest is None else model.manifest.labels
    return labels if len(labels) == count and count else tuple(map(str, range(count)))


def _confusion(matrix: ConfusionMatrix, names: Sequence[str], of: str) -> Chart:
    difference = matrix.difference
    largest = max((abs(change) for row in difference for change in row), default=0) or 1
    labelled = [f"{i} {name}" if name != str(i) else name for i, name in enumerate(names)]
    rows = [
        {
            "label": labelled[i],
            "decision": labelled[j],
            "change": change,
            "weight": abs(change) / largest,
            "better": (change > 0) == (i == j),
            "told": f"label {labelled[i]} taken for {labelled[j]}: {matrix.baseline[i][j]} by float, {matrix.candidate[i][j]} by edge",
        }
        for i, row in enumerate(difference)
        for j, change in enumerate(row)
        if len(names) <= _GRID or matrix.baseline[i][j] or matrix.candidate[i][j]
    ]
    table = Table(
        "Counts by label and decision",
        ("label", "decision", "float", "edge", "change"),
        tuple(
            (
                text(labelled[i]),
                text(labelled[j]),
                cell(matrix.baseline[i][j], 0),
                cell(matrix.candidate[i][j], 0),
                cell(change, 0, sign=True, tone="" if not change else "good" if (change > 0) == (i == j) else "bad"),
            )
            for i, row in enumerate(difference)
            for j, change in enumerate(row)
            if matrix.baseline[i][j] or matrix.candidate[i][j]
        ),
        frozenset({2, 3, 4}),
    )
    changed = any(change for row in difference for change in row)
    note = (
        "Edge minus float: how many more or fewer examples of a label are taken for a class. Green is better, red is worse."
        if changed
        else "No count changed."
    )
    return Chart(
        f"Change of the confusion matrix{of}", charts.heat(rows, labelled, labelled == list(map(str, range(len(names))))), table, note
    )


def _card(found: Disagreement, names: Sequence[str], rule: FlipRule | None, of: str) -> Card:
    def name(position: float | None) -> str:
        whole = position is not None and float(position).is_integer() and rule is not None
        return names[int(position)] if whole and 0 <= position < len(names) else number(position, 4 if rule is None else 0)  # type: ignore[arg-type, operator, index]

    if found.baseline_decision is not None:
        title = f"float {name(found.baseline_decision)}, edge {name(found.candidate_decision)}"
    elif len(found.predictions) == 1:
        title = f"float {number(found.predictions[0].baseline, 3)}, edge {number(found.predictions[0].candidate, 3)}"
    else:
        title = f"apart by {number(found.error, 3)}"
    by_name = len(names) > 1 and all(v.position < len(names) for v in found.predictions) and rule == "argmax"
    predictions = Table(
        f"Predictions{of}",
        ("class" if by_name else "position", "float", "edge"),
        tuple(
            (text(names[v.position] if by_name else v.position), _predicted(v.baseline), _predicted(v.candidate)) for v in found.predictions
        ),
        frozenset({1, 2}),
    )
    picture = next((f for f in found.features if f.image is not None), None)
    facts = [("label", name(found.label)), ("apart by", number(found.error, 3))]
    if picture is not None and picture.image is not None and picture.image.step > 1:
        facts.append(("drawn", f"one pixel in {picture.image.step}, of {picture.shape[0]} by {picture.shape[1]}"))
    for feature in found.features:
        if feature.image is None:
            size = len(feature.values)
            more = "" if not feature.shape or _elements(feature.shape) <= size else f", … ({' by '.join(map(str, feature.shape))})"
            values = ", ".join(v if isinstance(v, str) else f"{v:g}" for v in feature.values)
            facts.append((shortened(feature.name, 60), shortened(f"{values}{more}")))
    facts.append(("example", found.example[:12]))
    return Card(
        title=title,
        image=None if picture is None or picture.image is None else data_uri(picture.image),
        alt="" if picture is None else f"feature {picture.name} of an example with label {name(found.label)}",
        facts=Facts(tuple(facts)),
        predictions=predictions,
        flipped=bool(found.flipped),
    )


def _predicted(value: float) -> Cell:
    """With as many digits for all, so that they stand below each other."""
    return Cell(f"{value:.3f}", value) if abs(value) < 10_000 else cell(value)


def _elements(shape: Sequence[int]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count
