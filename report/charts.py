"""The charts' specifications, as data.

What comes from models and examples stands in `data` alone: fields, expressions and sort orders are fixed here, so no name of a layer
or a class can mean anything to Vega.
"""

from collections.abc import Sequence
from typing import Any

from tfx_edge.report.parts import Spec

WIDTH = 720
FLOAT, EDGE, GOOD, BAD, INK, MUTED = "var(--float)", "var(--edge)", "var(--good)", "var(--bad)", "var(--ink)", "var(--muted)"
_MODELS = {"domain": ["float", "edge"], "range": [FLOAT, EDGE]}


def differences(rows: Sequence[dict[str, Any]], metric: str) -> Spec:
    """A point for each slice at candidate minus baseline, with its interval.

    Args:
        rows: `slice`, `difference`, `low` and `high` or None, `worse`, and `limit`, the difference beyond which the gate refuses, or None.
        metric: name of it.
    """
    color = {"condition": {"test": "datum.worse", "value": BAD}, "value": EDGE}
    layers: list[Spec] = [
        {
            "data": {"values": [{"at": 0}]},
            "mark": {"type": "rule", "color": MUTED},
            "encoding": {"x": {"field": "at", "type": "quantitative"}},
        }
    ]
    if any(row["limit"] is not None for row in rows):
        marks = {"y": _by_order("slice"), "x": {"field": "limit", "type": "quantitative"}}
        layers.append({"mark": {"type": "tick", "color": BAD, "thickness": 2, "size": 16}, "encoding": marks})
    if any(row["low"] is not None for row in rows):
        ends = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
        layers.append({"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"y": _by_order("slice"), **ends, "color": color}})
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {
                "y": _by_order("slice"),
                "x": {"field": "difference", "type": "quantitative", "title": f"{metric}: edge minus float"},
                "color": color,
            },
        }
    )
    return {"width": WIDTH, "height": {"step": 20}, "data": {"values": list(rows)}, "layer": layers}


def pairs(rows: Sequence[dict[str, Any]], unit: str, limits: Sequence[dict[str, Any]] = ()) -> Spec:
    """Bars of float and edge model beside each other.

    Args:
        rows: `what`, `model` ("float" or "edge"), `value`, `label`.
        unit: of the values.
        limits: `what`, `limit`: budgets to mark.
    """
    offset = {"field": "model", "type": "nominal", "sort": ["float", "edge"]}
    x = {"field": "value", "type": "quantitative", "title": unit, "scale": {"zero": True}}
    what = {"field": "what", "type": "nominal", "sort": None, "title": None}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "cornerRadiusEnd": 2},
            "encoding": {"x": x, "color": {"field": "model", "type": "nominal", "scale": _MODELS, "title": None}},
        },
        {"mark": {"type": "text", "align": "left", "dx": 4, "aria": False}, "encoding": {"x": x, "text": {"field": "label"}}},
    ]
    spec: Spec = {"width": WIDTH, "height": {"step": 24}, "data": {"values": list(rows)}, "encoding": {"y": what, "yOffset": offset}}
    if not limits:
        return {**spec, "layer": layers}
    mark = {"type": "tick", "color": BAD, "thickness": 2, "size": 48}
    drawn = {"data": {"values": list(limits)}, "mark": mark, "encoding": {"y": what, "x": {"field": "limit", "type": "quantitative"}}}
    layers = [{**layer, "encoding": {**layer["encoding"], "yOffset": offset}} for layer in layers]
    return {**spec, "encoding": {"y": what}, "layer": [*layers, drawn]}


def budgets(rows: Sequence[dict[str, Any]]) -> Spec:
    """How much of each budget is used.

    Args:
        rows: `what`, `used` in percent, `label`, `over`.
    """
    x = {"field": "used", "type": "quantitative", "title": "percent of the budget", "scale": {"zero": True}}
    rule = {"data": {"values": [{"at": 100}]}, "mark": {"type": "rule", "color": BAD, "strokeDash": [4, 3]}}
    return {
        "width": WIDTH,
        "height": {"step": 26},
        "data": {"values": list(rows)},
        "layer": [
            {
                "mark": {"type": "bar", "cornerRadiusEnd": 2},
                "encoding": {"y": _by_order("what"), "x": x, "color": {"condition": {"test": "datum.over", "value": BAD}, "value": EDGE}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 4, "aria": False},
                "encoding": {"y": _by_order("what"), "x": x, "text": {"field": "label"}},
            },
            {**rule, "encoding": {"x": {"field": "at", "type": "quantitative"}}},
        ],
    }


def scatter(rows: Sequence[dict[str, Any]], metric: str, size: str) -> Spec:
    """Accuracy against size.

    Args:
        rows: `name`, `kind` ("float", "passed", "refused"), `size` in kB, `value`, `label` or an empty text.
        metric: what `value` is.
        size: what `size` is.
    """
    looks = {"float": (FLOAT, "diamond"), "passed": (EDGE, "circle"), "refused": (BAD, "cross")}
    there = [kind for kind in looks if any(row["kind"] == kind for row in rows)]
    kinds = {"domain": there, "range": [looks[kind][0] for kind in there]}
    shapes = {"domain": there, "range": [looks[kind][1] for kind in there]}
    encoding = {
        "x": {"field": "size", "type": "quantitative", "title": f"{size}, kB", "scale": {"zero": False, "nice": True, "padding": 20}},
        "y": {
            "field": "value",
            "type": "quantitative",
            "title": metric,
            "scale": {"zero": False, "nice": False, "domain": _around([row["value"] for row in rows])},
            "axis": {"grid": True},
        },
    }
    points = {
        "color": {"field": "kind", "type": "nominal", "scale": kinds, "title": None},
        "shape": {"field": "kind", "type": "nominal", "scale": shapes, "title": None},
        "description": {"field": "told"},
    }
    return {
        "width": WIDTH,
        "height": 300,
        "data": {"values": list(rows)},
        "encoding": encoding,
        "layer": [
            {"mark": {"type": "point", "filled": True, "size": 110, "opacity": 1}, "encoding": points},
            {"mark": {"type": "text", "align": "left", "dx": 9, "dy": -7, "aria": False}, "encoding": {"text": {"field": "label"}}},
        ],
    }


def bars(rows: Sequence[dict[str, Any]], title: str, target: bool = False) -> Spec:
    """A bar for each layer or operator, in the model's order.

    Args:
        rows: `what`, `value`, and with `target` what was asked for.
        title: of the values, with their unit.
        target: mark it.
    """
    x = {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": True}}
    layers: list[Spec] = [{"mark": {"type": "bar", "color": EDGE, "cornerRadiusEnd": 2}, "encoding": {"y": _by_order("what"), "x": x}}]
    if target:
        asked = {"field": "target", "type": "quantitative", "title": title}
        mark = {"type": "tick", "color": INK, "thickness": 2, "size": 18}
        layers.append({"mark": mark, "encoding": {"y": _by_order("what"), "x": asked}})
    return {"width": WIDTH, "height": {"step": 22}, "data": {"values": list(rows)}, "layer": layers}


def heat(rows: Sequence[dict[str, Any]], classes: Sequence[str], numbered: bool) -> Spec:
    """How many more, or fewer, examples of a class are taken for each class.

    Args:
        rows: `label`, `decision`, `change`, `weight` from 0 to 1, `better`, `told`.
        classes: what labels and decisions may be.
        numbered: they have no names but their numbers.
    """
    step = 34 if len(classes) <= 12 else 22 if len(classes) <= 25 else 13
    scale = {"domain": list(classes)}
    axis: Spec = {"labelLimit": 90, "domain": False, "ticks": False}
    encoding: Spec = {
        "y": {"field": "label", "type": "ordinal", "scale": scale, "title": "label", "axis": axis},
        "x": {
            "field": "decision",
            "type": "ordinal",
            "sort": None,
            "title": "decision",
            "axis": {**axis, "orient": "top", "labelAngle": 0 if numbered else -90},
        },
    }
    color = {"condition": {"test": "datum.better", "value": GOOD}, "value": BAD}
    opacity = {"field": "weight", "type": "quantitative", "scale": {"domain": [0, 1], "range": [0, 0.75]}, "legend": None}
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "stroke": "var(--line)"},
            "encoding": {"fill": color, "fillOpacity": opacity, "description": {"field": "told"}},
        }
    ]
    if step > 20:
        layers.append(
            {
                "transform": [{"filter": "datum.change != 0"}],
                "mark": {"type": "text", "aria": False},
                "encoding": {"text": {"field": "change", "format": "+"}},
            }
        )
    return {
        "width": {"step": step},
        "height": {"step": step},
        "data": {"values": list(rows)},
        "encoding": encoding,
        "layer": layers,
    }


def history(rows: Sequence[dict[str, Any]], title: str, models: bool) -> Spec:
    """A line over runs, oldest first.

    Args:
        rows: `run` counted from 1, `model` ("float" or "edge"), `value`, `told`, `refused`.
        title: of the values.
        models: float and edge model both.
    """
    color: Spec = {"field": "model", "type": "nominal", "scale": _MODELS, "title": None, **({} if models else {"legend": None})}
    runs = sorted({row["run"] for row in rows})
    axis = {"grid": False, "format": "d", "values": runs[:: -(-len(runs) // 12)]}
    y = {"zero": False, "nice": False, "domain": _around([row["value"] for row in rows])}
    return {
        "width": WIDTH,
        "height": 180,
        "data": {"values": list(rows)},
        "encoding": {
            "x": {
                "field": "run",
                "type": "quantitative",
                "title": "run",
                "scale": {"zero": False, "nice": False, "padding": 12},
                "axis": axis,
            },
            "y": {"field": "value", "type": "quantitative", "title": title, "scale": y, "axis": {"grid": True}},
        },
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 1.5, "aria": False}, "encoding": {"color": color}},
            {
                "mark": {"type": "point", "filled": True, "opacity": 1, "size": 70},
                "encoding": {
                    "color": color,
                    "shape": {"condition": {"test": "datum.refused", "value": "cross"}, "value": "circle"},
                    "description": {"field": "told"},
                },
            },
        ],
    }


def _by_order(field: str) -> Spec:
    """The rows' own order, from above."""
    return {"field": field, "type": "nominal", "sort": None, "title": None}


def _around(values: Sequence[float]) -> list[float]:
    """A scale that shows values with room about them, even where all are one.

    >>> _around([0.5, 0.75]), _around([0.5])
    ([0.4625, 0.7875], [0.495, 0.505])
    """
    low, high = min(values), max(values)
    room = 0.15 * (high - low) or 0.01 * abs(high) or 0.01
    return [low - room, high + room]
