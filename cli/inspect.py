"""`tfx-edge inspect`: what a flatbuffer is made of."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfx_edge.schemas import EdgeError, Signature, TensorSpec

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tfx_edge.schemas.description import FlatbufferDescription, GraphDescription, TensorDescription
    from tfx_edge.schemas.model_metadata import ModelMetadata


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="All of it as one JSON document, a FlatbufferDescription.")
def inspect(model: Path, as_json: bool) -> None:
    """Show the operators, tensors, quantization, signatures and metadata of MODEL, a .tflite file, without running it.

    Targets are judged by their documented rules alone. A damaged file is an error, in at most a minute and 4 GB.

    Example: tfx-edge inspect pushed_model/1/tflite
    """
    from tfx_edge.litert.description import describe_safely

    try:
        content = model.read_bytes()
    except OSError as error:
        raise EdgeError(f"{model}: can't be read ({error.strerror}); name a .tflite file") from error
    described = describe_safely(content)
    if as_json:
        click.echo(described.to_json(), nl=False)
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for part in _rendered(described):
        console.print(part, soft_wrap=isinstance(part, str))


def _rendered(described: "FlatbufferDescription") -> Iterator["RenderableType"]:
    from rich.table import Table

    yield f"digest           {described.digest}"
    yield f"size             {described.size_bytes:,} B, {described.gzip_bytes:,} B gzipped, {described.constant_bytes:,} B of constants"
    yield f"minimum runtime  {described.minimum_runtime or 'not said'}"
    yield "operators        " + ", ".join(f"{count} {name}" for name, count in described.operators.items())
    for name, signature in described.signatures.items():
        yield f"signature        {name}: {_ends(signature)}"
    if described.metadata:
        yield "metadata         " + ", ".join(f"{entry.name} ({entry.bytes} B)" for entry in described.metadata)
    if described.model_metadata is not None:
        yield from _metadata(described.model_metadata)
    for target in described.targets:
        left = ", ".join(f"{count} {name}" for name, count in target.unsupported.items())
        yield f"{target.target:<16} {target.supported} operators supported" + (f", not {left}" if left else "")
        yield from (f"                 {reason}" for reason in target.reasons)
    for graph in described.graphs:
        table = Table("", "operator", "from", "to", title=f"graph {graph.name!r}", title_justify="left")
        for i, operator in enumerate(graph.operators):
            outputs = "\n".join(_tensor(graph, index) for index in operator.outputs)
            table.add_row(str(i), operator.name, "\n".join(_tensor(graph, index) for index in operator.inputs if index >= 0), outputs)
        yield table


def _metadata(told: "ModelMetadata") -> Iterator[str]:
    parts = (told.name, told.version and f"version {told.version}", told.license, told.description)
    yield "model metadata   " + (", ".join(part for part in parts if part) or "names of the inputs and outputs alone")
    for tensor in (*told.inputs, *told.outputs):
        if (normal := tensor.normalization) is not None:
            mean, std = (", ".join(f"{value:g}" for value in values) for values in (normal.mean, normal.std))
            yield f"                 {tensor.name}: less {mean}, divided by {std}"
        for file in tensor.files:
            yield f"                 {tensor.name}: {file.name}" + ("" if file.text is None else f", {len(file.text.splitlines())} lines")


def _ends(signature: Signature) -> str:
    return ", ".join(map(_spec, signature.inputs)) + " to " + ", ".join(map(_spec, signature.outputs))


def _spec(spec: TensorSpec) -> str:
    shape = ", ".join("any" if size is None else str(size) for size in spec.shape)
    scale = "" if spec.scale is None else f", scale {spec.scale:g}, zero point {spec.zero_point}"
    return f"{spec.name} {spec.dtype} [{shape}]{scale}"


def _tensor(graph: "GraphDescription", index: int) -> str:
    if index >= len(graph.tensors):
        return f"tensor {index}, which isn't there"
    tensor = graph.tensors[index]
    return f"{index} {tensor.name} {tensor.dtype} {list(tensor.shape)}{_quantization(tensor)}"


def _quantization(tensor: "TensorDescription") -> str:
    if not tensor.scales:
        return ""
    if len(tensor.scales) > 1:
        return f" {len(tensor.scales)} scales"
    return f" scale {tensor.scales[0]:g} zero point {tensor.zero_points[0]}" if tensor.zero_points else f" scale {tensor.scales[0]:g}"
