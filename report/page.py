"""A run report as one HTML file: no request leaves it, and no script is needed to read it."""

import base64
import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path

from tfx_edge.report.candidates import candidates_section
from tfx_edge.report.cost import cost_section
from tfx_edge.report.disagreements import disagreements_section
from tfx_edge.report.history import history_section
from tfx_edge.report.layers import layers_section
from tfx_edge.report.making import lineage_section, origin_section, plan_section
from tfx_edge.report.metrics import drift_section, metrics_section
from tfx_edge.report.numbers import shortened
from tfx_edge.report.parts import Section
from tfx_edge.report.svg import VEGA_LITE, draw
from tfx_edge.report.verdict import conditions, figures
from tfx_edge.schemas import EdgeError, JudgedModel, RunReport

_TEMPLATES = Path(__file__).parent / "templates"
_BYTES = 1_900_000
_REASONS = 200


@dataclass(frozen=True)
class Group:
    """Sections that belong together: one model's, or those of the whole run.

    Attributes:
        anchor: begins its sections' ids.
        title: empty where the page has one model.
        closed: shown only when asked for.
        sections: in their order.
    """

    anchor: str
    title: str
    closed: bool
    sections: tuple[Section, ...]


def render_page(run: RunReport) -> str:
    """The page.

    Args:
        run: all that it shows; what isn't there is left out with a line that says why.

    Raises:
        EdgeError: jinja2 or vl-convert isn't installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise EdgeError("the report's page: jinja2 is not installed; pip install 'tfx-edge[report]'") from None
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # Vega escapes what it draws, and the style and script are this package's: these alone aren't escaped once more.
    style, script = (Markup((_TEMPLATES / name).read_text()) for name in ("page.css", "page.js"))  # noqa: S704
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )

    def page(shown: int) -> str:
        model = run.models[0]
        numbers = itertools.count(1)
        return environment.get_template("page.html").render(
            run=run,
            title=run.pipeline or model.name,
            report=model.report,
            reasons=tuple(shortened(reason, 1000) for reason in model.report.reasons[:_REASONS]),
            figures=tuple(figures(model)),
            conditions=tuple(conditions(model.report.config)),
            groups=_groups(run, shown),
            style=style,
            script=script,
            policy=policy,
            svg=lambda chart: Markup(draw(chart, f"chart{next(numbers)}")),  # noqa: S704
            kind=lambda part: type(part).__name__,
            license=(_TEMPLATES / "vega_license.txt").read_text(),
            vega_lite=VEGA_LITE,
        )

    shown = len(run.models)
    html: str = page(shown)
    while len(html.encode()) > _BYTES and shown > 1:
        shown //= 2
        html = page(shown)
    return html


def _groups(run: RunReport, shown: int) -> tuple[Group, ...]:
    """What the page has, with the first models in full."""
    if len(run.models) == 1:
        metrics, cost, *rest = _of_model(run.models[0])
        return (Group("run", "", False, (metrics, cost, candidates_section(run), *rest, lineage_section(run), history_section(run))),)
    models = (
        Group(f"model{i}", f"{model.name}: {'blessed' if model.report.blessed else 'not blessed'}", i > 1, _of_model(model))
        for i, model in enumerate(run.models[:shown], start=1)
    )
    of_all = [candidates_section(run)]
    if shown < len(run.models):
        left = f"{len(run.models) - shown} models in full, to keep the page small; they are in the JSON."
        of_all.append(Section("others", "Other models", absent=(left,)))
    return (
        Group("run", "All candidates", False, tuple(of_all)),
        *models,
        Group("past", "The run", False, (lineage_section(run), history_section(run))),
    )


def _of_model(model: JudgedModel) -> tuple[Section, ...]:
    return (
        metrics_section(model.report),
        cost_section(model),
        disagreements_section(model),
        layers_section(model),
        drift_section(model.report),
        plan_section(model),
        origin_section(model),
    )


def _hash(text: str) -> str:
    """What a content security policy allows a style or script by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
