"""Which layers an operator computes.

The converter names a tensor after the nodes of TensorFlow's graph that made it, `model/conv/Conv2D` or, of several in one operator,
`model/relu/Relu;model/bn/FusedBatchNormV3;model/conv/Conv2D`; Keras names nodes after layers. Three things the names don't tell, and
the model's structure does: a signature's outputs are called after the signature; some patterns of the converter name their operator
`tfl.something`; and a folded normalization can hide the layer that it was folded into.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tfx_edge.litert.operator_report.kinds import (
    ACTIVATIONS,
    KERNELS,
    MOVES,
    NORMALIZATIONS,
    RECURRENT_LAYERS,
    RECURRENT_OPERATORS,
)
from tfx_edge.litert.operator_report.reading import Operator
from tfx_edge.schemas.operators import SourceLayer

_CONVERSIONS = ("DEQUANTIZE", "QUANTIZE")


def attribute(
    operators: Sequence[Operator], layers: Sequence[SourceLayer], outputs: Mapping[tuple[int, int], str]
) -> list[tuple[str, ...]]:
    """The layers of each operator, in the model's order.

    Args:
        operators: of the flatbuffer, in its order.
        layers: of the Keras model, in its order: a layer behind those that it reads.
        outputs: names of the model's outputs by graph and tensor.

    Returns:
        Names of layers; none for an operator that converts between types, or of which nothing tells.
    """
    names = {layer.name: layer for layer in layers}
    given = {output: layer.name for layer in layers for output in layer.outputs}
    readers = _readers(operators)
    found: list[set[str]] = [set() for _ in operators]
    for position in reversed(range(len(operators))):  # what reads an operator's result comes behind it
        op = operators[position]
        if op.kind in _CONVERSIONS:
            continue
        own = _named(op.name, names)
        output = _output(op, operators, readers, outputs)
        if output in given and not own:
            own = {_computing(given[output], names, moves=op.kind in MOVES)}
        if not own:
            own = _read_by(op, [found[i] for i in _consumers(position, operators, readers)], found, operators, names)
        found[position] = own | _hidden(op, own, names)
    _take_in(operators, found, layers, names)
    order = {layer.name: at for at, layer in enumerate(layers)}
    return [tuple(sorted(each, key=lambda name: order[name])) for each in found]


def _take_in(
    operators: Sequence[Operator], found: Sequence[set[str]], layers: Sequence[SourceLayer], names: Mapping[str, SourceLayer]
) -> None:
    """Adds normalizations and activations that no name tells of to the operator of the kernel they stand behind."""
    told = {name for each in found for name in each}
    for layer in layers:
        if layer.name in told or layer.is_identity or not _follows(layer):
            continue
        before = next((name for name in _before(layer.name, names) if not names[name].is_identity), None)
        if before is None or names[before].activation is not None:
            continue
        for op, own in zip(operators, found, strict=True):
            if op.kind in KERNELS and before in own and (layer.kind in NORMALIZATIONS or op.activation is not None):
                own.add(layer.name)


def _named(name: str, layers: Mapping[str, SourceLayer]) -> set[str]:
    """The layers in the node names that a tensor's name is made of; nodes that emulate quantization compute nothing."""
    return {layer for node in name.split(";") if "/FakeQuant" not in node and (layer := _layer_of(node, layers)) is not None}


def _layer_of(node: str, layers: Mapping[str, SourceLayer]) -> str | None:
    """The layer whose scope a node stands in: the outermost, behind the model's own, which may have a layer's name."""
    parts = node.split("/")
    spans = ((start, stop) for start in range(len(parts)) for stop in range(len(parts), start, -1))
    fitting = [(start, "/".join(parts[start:stop])) for start, stop in spans if "/".join(parts[start:stop]) in layers]
    return min(fitting, key=lambda each: (each[0] == 0, each[0]), default=(0, None))[1]  # of one start the longest comes first


def _computing(name: str, layers: Mapping[str, SourceLayer], moves: bool) -> str:
    """The layer that an output is computed by, past those that compute nothing, and for moving values past those that never do."""
    while (layers[name].is_identity or (moves and _follows(layers[name]))) and [i for i in layers[name].inputs if i in layers]:
        name = layers[name].inputs[0]
    return name


def _readers(operators: Sequence[Operator]) -> dict[tuple[int, int], list[int]]:
    """Positions of the operators that read a tensor, by its graph and index."""
    found: dict[tuple[int, int], list[int]] = {}
    for position, op in enumerate(operators):
        for tensor in op.inputs:
            found.setdefault((op.graph, tensor), []).append(position)
    return found


def _consumers(position: int, operators: Sequence[Operator], readers: Mapping[tuple[int, int], list[int]]) -> Iterator[int]:
    """Operators that read an operator's results, through conversions."""
    op = operators[position]
    for reader in {reader for tensor in op.outputs for reader in readers.get((op.graph, tensor), ()) if reader > position}:
        if operators[reader].kind in _CONVERSIONS:
            yield from _consumers(reader, operators, readers)
        else:
            yield reader


def _output(
    op: Operator, operators: Sequence[Operator], readers: Mapping[tuple[int, int], list[int]], outputs: Mapping[tuple[int, int], str]
) -> str | None:
    """The model's output that an operator gives, itself or through a conversion."""
    for tensor in op.outputs:
        if (op.graph, tensor) in outputs:
            return outputs[op.graph, tensor]
        for reader in readers.get((op.graph, tensor), ()):
            after = operators[reader]
            if after.kind in _CONVERSIONS and after.outputs and (op.graph, after.outputs[0]) in outputs:
                return outputs[op.graph, after.outputs[0]]
    return None


def _read_by(
    op: Operator, consumers: Iterable[set[str]], found: Sequence[set[str]], operators: Sequence[Operator], layers: Mapping[str, SourceLayer]
) -> set[str]:
    """The layer of an operator whose name says nothing, by the layers that read it."""
    reading = {name for each in consumers for name in each}
    if op.kind not in RECURRENT_OPERATORS:
        return reading if len(reading) == 1 else set()
    done = [name for other, names in zip(operators, found, strict=True) if other.kind in RECURRENT_OPERATORS for name in names]
    for name in (*reading, *(before for start in reading for before in _before(start, layers))):
        if layers[name].kind in RECURRENT_LAYERS and done.count(name) < (2 if layers[name].kind == "Bidirectional" else 1):
            return {name}
    return set()


def _before(name: str, layers: Mapping[str, SourceLayer]) -> Iterator[str]:
    """The layers that a layer's result comes from, nearest first."""
    pending, seen = list(layers[name].inputs), {name}
    while pending:
        name = pending.pop(0)
        if name in layers and name not in seen:
            seen.add(name)
            yield name
            pending += layers[name].inputs


def _hidden(op: Operator, named: set[str], layers: Mapping[str, SourceLayer]) -> set[str]:
    """Layers in front of the named ones that must be in the operator too: the kernel under a normalization or an activation."""
    found: set[str] = set()
    if op.kind in MOVES or any(not _follows(layers[name]) for name in named):
        return found
    needs_kernel = op.kind in KERNELS
    current = _first(named, layers)
    while current is not None and (needs_kernel or (op.activation is not None and layers[current].kind in ACTIVATIONS)):
        before = [name for name in layers[current].inputs if name in layers]
        if len(before) != 1:
            break
        current = before[0]
        if not layers[current].is_identity:
            found.add(current)
            if not _follows(layers[current]):
                break
    return found


def _follows(layer: SourceLayer) -> bool:
    return layer.is_identity or layer.kind in ACTIVATIONS | NORMALIZATIONS


def _first(named: set[str], layers: Mapping[str, SourceLayer]) -> str | None:
    """The one of some layers that reads none of the others."""
    return next((name for name in named if not named & set(layers[name].inputs)), None)
