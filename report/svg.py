"""Vega-Lite's charts as SVG.

The charts are drawn when the page is made, so that it needs neither scripts nor time to show them, and prints as it is. Colours are
CSS variables, which the page sets for light, dark and print.
"""

import re
from html import escape
from typing import Any

from tfx_edge.report.parts import Chart
from tfx_edge.schemas import EdgeError

VEGA_LITE = "6.4"
_FONT = "system-ui, sans-serif"
_CONFIG: dict[str, Any] = {
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "padding": {"left": 16, "right": 24, "top": 6, "bottom": 6},  # a browser's letters may be wider than those measured here
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 12,
        "labelLimit": 260,
        "labelOverlap": True,
        "tickCount": 6,
    },
    "axisY": {"grid": False},
    "legend": {"labelColor": "var(--ink)", "titleColor": "var(--muted)", "labelFontSize": 12, "titleFontSize": 12, "orient": "top"},
    "header": {"labelColor": "var(--ink)", "titleColor": "var(--muted)"},
    "title": {"color": "var(--ink)"},
    "text": {"color": "var(--ink)", "fontSize": 12},
}


def draw(chart: Chart, name: str) -> str:
    """The chart as an SVG element with a label for each mark.

    Args:
        chart: its specification holds its data; names in it are data, never expressions or fields.
        name: unlike any other chart's in the page, since ids within an SVG are the page's.

    Raises:
        EdgeError: vl-convert isn't installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise EdgeError("the report's charts: vl-convert-python is not installed; pip install 'tfx-edge[report]'") from None
    # No URL is allowed, so that nothing is ever loaded.
    svg: str = vl_convert.vegalite_to_svg(chart.spec, vl_version=VEGA_LITE, config=_CONFIG, allowed_base_urls=[])
    # Vega counts ids on from chart to chart; here each chart counts its own.
    ids = {
        found: f"{name}-{i}" for i, found in enumerate(dict.fromkeys(re.findall(r'<(?:clipPath|linearGradient) id="(\w+)"', svg)), start=1)
    }
    svg = re.sub(r'<(clipPath|linearGradient) id="(\w+)"', lambda m: f'<{m[1]} id="{ids[m[2]]}"', svg)
    svg = re.sub(r'="url\(#(\w+)\)"', lambda m: f'="url(#{ids.get(m[1], m[1])})"', svg)
    label = escape(f"{chart.title}. {chart.note}".strip(), quote=True)
    head = f'<svg role="graphics-document" aria-roledescription="chart" aria-label="{label}" '
    return svg.replace("<svg ", head, 1).replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "", 1)
