"""`tfx-edge compare`: two edge models side by side."""

import json
from pathlib import Path
from typing import Any

import click

from tfx_edge.schemas import EdgeError, Manifest
from tfx_edge.schemas.release import MANIFEST

_FIGURES = ("size_bytes", "gzip_bytes")
_FACTS = ("name", "version", "scheme", "features", "minimum_runtime", "source_model_digest", "plan_digest", "digest")


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
def compare(a: Path, b: Path, as_json: bool) -> None:
    """Show in what the edge models A and B differ: folders as TFLiteExporter or `quantize` writes them, or their manifest.json.

    Whether one predicts as well as the other is what `validate` tells.

    Example: tfx-edge compare models/monday models/tuesday
    """
    first, second = _manifest(a), _manifest(b)
    found = differences(first, second)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for name, (before, after) in found.items():
        ratio = f" ({after / before:.2f} times)" if name in _FIGURES and before else ""
        click.echo(f"{name}: {_text(before)} -> {_text(after)}{ratio}")
    if not found:
        click.echo("no difference but the run that made them")


def differences(a: Manifest, b: Manifest) -> dict[str, tuple[Any, Any]]:
    """What two manifests say differently, but for the run: facts, figures, operators, inputs and outputs, by name."""
    pairs: dict[str, tuple[Any, Any]] = {name: (getattr(a, name), getattr(b, name)) for name in (*_FACTS, *_FIGURES)}
    for operator in sorted({*a.operators, *b.operators}):
        pairs[f"operators.{operator}"] = (a.operators.get(operator, 0), b.operators.get(operator, 0))
    for end in ("inputs", "outputs"):
        ends = [{spec.name: f"{spec.dtype} {list(spec.shape)}" for spec in getattr(m.signature, end)} for m in (a, b)]
        for name in sorted({*ends[0], *ends[1]}):
            pairs[f"{end}.{name}"] = (ends[0].get(name), ends[1].get(name))
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _manifest(path: Path) -> Manifest:
    file = path / MANIFEST if path.is_dir() else path
    try:
        return Manifest.from_json(file.read_bytes())
    except OSError as error:
        raise EdgeError(
            f"{file}: can't be read ({error.strerror}); name a folder as TFLiteExporter writes it, or its manifest.json"
        ) from error


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
