"""Sparsity and errors by layer, as parts of a page."""

from collections.abc import Sequence

from tfx_edge.report import charts
from tfx_edge.report.numbers import cell, number, text
from tfx_edge.report.parts import Cell, Chart, Part, Section, Table, cut
from tfx_edge.schemas import JudgedModel, LayerError, LayerErrors, SparsityReport

_DRAWN, _LISTED, _COSTLY = 40, 300, 20


def layers_section(model: JudgedModel) -> Section:
    """How sparse each layer is, and where the candidate loses accuracy."""
    parts: list[Part] = []
    absent: list[str] = []
    if model.sparsity is not None and model.sparsity.layers:
        parts.append(_sparsity(model.sparsity))
    else:
        absent.append(f"Sparsity: {model.missing.get('sparsity', 'the run has no Pruner that makes weights zero.')}")
    if model.report.layers is not None and model.report.layers.layers:
        parts += [_errors(model.report.layers), _losses(model.report.layers)]
    else:
        told = [note for note in model.report.notes if "layer" in note] or ["the gate made no table of them"]
        absent.append(f"Errors by operator: {'; '.join(told)}.")
    return Section("layers", "Layers", tuple(parts), tuple(absent))


def _sparsity(report: SparsityReport) -> Chart:
    shown, note = cut(report.layers, _DRAWN, "layers in the model's order")
    rows = [{"what": f"{layer.layer} ({layer.type})", "value": 100 * layer.sparsity, "target": 100 * layer.target} for layer in shown]
    table = Table(
        "Sparsity by layer",
        ("layer", "type", "weights", "zeros", "sparsity", "target", "left because"),
        tuple(
            (
                text(layer.layer),
                text(layer.type),
                Cell(f"{layer.weights:,}", layer.weights),
                Cell(f"{layer.zeros:,}", layer.zeros),
                Cell(f"{layer.sparsity:.1%}", layer.sparsity),
                Cell(f"{layer.target:.1%}", layer.target),
                text(layer.reason),
            )
            for layer in report.layers[:_LISTED]
        ),
        frozenset({2, 3, 4, 5}),
    )
    told = f"{report.sparsity:.1%} of the pruned layers' weights are zero; the marks are what was asked for."
    return Chart("Sparsity by layer", charts.bars(rows, "zero weights, percent", target=True), table, f"{told} {note}".strip())


def _errors(errors: LayerErrors) -> Chart:
    named = list(enumerate(errors.layers, start=1))
    shown, note = cut(named, _DRAWN, "operators in order of execution")
    rows = [{"what": f"{i} {layer.op}", "value": layer.sqnr_db} for i, layer in shown if layer.sqnr_db is not None]
    told = f"Signal to noise of each operator's output against the float model's, on {errors.examples} examples: higher is better."
    skipped = f"{errors.skipped} outputs that only one of the two has are left out." if errors.skipped else ""
    return Chart(
        "Quality by operator, in order of execution",
        charts.bars(rows, "SQNR, dB"),
        _table(named[:_LISTED]),
        " ".join(line for line in (told, skipped, note) if line),
    )


def _losses(errors: LayerErrors) -> Chart:
    numbered = sorted(enumerate(errors.layers, start=1), key=lambda pair: -pair[1].loss_db)
    worst = [(i, layer) for i, layer in numbered if layer.loss_db > 0][:_COSTLY] or numbered[:1]
    rows = [{"what": f"{i} {layer.op}", "value": layer.loss_db} for i, layer in worst]
    note = "What an operator itself adds to the noise that it got, the costliest first: here accuracy is lost."
    return Chart("Loss by operator", charts.bars(rows, "loss, dB"), _table(worst), note)


def _table(layers: Sequence[tuple[int, LayerError]]) -> Table:
    rows = tuple(
        (
            cell(i, 0),
            text(layer.op),
            text(layer.tensor),
            Cell(number(layer.sqnr_db, 1), layer.sqnr_db),
            Cell(number(layer.loss_db, 2), layer.loss_db),
            cell(layer.mean_abs_error),
            cell(layer.worst_abs_error),
        )
        for i, layer in layers
    )
    columns = ("#", "operator", "output", "SQNR, dB", "loss, dB", "mean error", "worst error")
    return Table("Errors by operator", columns, rows, frozenset({0, 3, 4, 5, 6}))
