"""What became of each layer, and why a normalization or an activation isn't part of the operator before it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfx_edge.litert.operator_report.kinds import ACTIVATIONS, CONVOLUTIONS, FUSED, MOVES, NORMALIZATIONS
from tfx_edge.litert.operator_report.reading import Operator
from tfx_edge.schemas.operators import LayerOperators, OperatorsReport, SourceLayer


@dataclass(frozen=True)
class UnfusedBlock:
    """A convolution or dense layer with a normalization or an activation behind it that didn't become one operator.

    Attributes:
        layer: the convolution or dense layer.
        unfused: what stands behind it and isn't part of its operator.
        reason: why the first of them isn't.
    """

    layer: str
    unfused: tuple[str, ...]
    reason: str


def unfused_blocks(report: OperatorsReport) -> tuple[UnfusedBlock, ...]:
    """The blocks of convolution (or dense layer), normalization and ReLU that aren't one operator.

    An activation counts that LiteRT's kernels have: relu and relu6.

    Args:
        report: of a model whose layers are known.

    Returns:
        None where every block is one operator: the assertion that fusion worked.
    """
    return tuple(_blocks(report))


def _blocks(report: OperatorsReport) -> Iterator[UnfusedBlock]:
    by_name = {layer.name: layer for layer in report.layers}
    for layer in report.layers:
        if layer.kind not in CONVOLUTIONS:
            continue
        behind = list(_behind(layer, report.layers))
        unfused = [name for name in behind if not _in_a_kernel(by_name[name], by_name)]
        if unfused:
            yield UnfusedBlock(
                layer.name, tuple(unfused), by_name[unfused[0]].reason or f"it is part of {by_name[unfused[0]].fused_into!r}"
            )


def _in_a_kernel(layer: LayerOperators, layers: Mapping[str, LayerOperators]) -> bool:
    """Whether a convolution or dense layer does a layer's work: the one before it, or for a normalization the one behind it."""
    return layer.fused_into is not None and layers[layer.fused_into].kind in CONVOLUTIONS


def _behind(layer: LayerOperators, layers: Sequence[LayerOperators]) -> Iterator[str]:
    """A normalization, a fusible activation, or the one and then the other, each reading the layer before it."""
    ends = {layer.name}
    for kinds in (NORMALIZATIONS, ACTIVATIONS):
        for other in layers:
            if ends & set(other.inputs):
                if other.is_identity:
                    ends.add(other.name)
                elif other.kind in kinds and (other.kind in NORMALIZATIONS or other.activation in FUSED):
                    yield other.name
                    ends.add(other.name)


def layer_operators(
    operators: Sequence[Operator], attributed: Sequence[tuple[str, ...]], layers: Sequence[SourceLayer]
) -> Iterator[LayerOperators]:
    """What became of each layer, in the model's order.

    Args:
        operators: of the flatbuffer, in its order.
        attributed: the layers of each.
        layers: of the Keras model.
    """
    model = _Model(layers, operators, attributed)
    for layer in layers:
        fused_into = model.fused_into(layer)
        yield LayerOperators(
            **layer.model_dump(),
            operators=tuple(model.positions[layer.name]),
            fused_into=fused_into,
            reason=None if fused_into else _reason(layer, model),
        )


class _Model:
    """A model's structure beside the operators of its layers."""

    def __init__(self, layers: Sequence[SourceLayer], operators: Sequence[Operator], attributed: Sequence[tuple[str, ...]]) -> None:
        self.layers: Mapping[str, SourceLayer] = {layer.name: layer for layer in layers}
        self.operators, self.attributed = operators, attributed
        self.positions: dict[str, list[int]] = {layer.name: [] for layer in layers}
        for position, names in enumerate(attributed):
            for name in names:
                self.positions[name].append(position)
        self.readers: dict[str, list[str]] = {layer.name: [] for layer in layers}
        for layer in layers:
            for name in layer.inputs:
                if name in self.readers:
                    self.readers[name].append(layer.name)

    def fused_into(self, layer: SourceLayer) -> str | None:
        """The layer that a layer's work is done by: the one whose kernel or first part an operator is."""
        owners = [self._owner(self.attributed[position]) for position in self.positions[layer.name]]
        if owners:
            return None if layer.name in owners else owners[0]
        if layer.kind in NORMALIZATIONS:  # folded into the weights of the dense layer that reads it
            readers = self.readers[layer.name]
            return readers[0] if len(readers) == 1 and self.layers[readers[0]].kind in CONVOLUTIONS else None
        return None

    def _owner(self, names: Sequence[str]) -> str:
        return next((name for name in names if self.layers[name].kind in CONVOLUTIONS), names[0])

    def before(self, layer: SourceLayer) -> SourceLayer | None:
        """The layer that a layer reads, past those that compute nothing; None for the model's input, or several."""
        while len(layer.inputs) == 1 and layer.inputs[0] in self.layers:
            layer = self.layers[layer.inputs[0]]
            if not layer.is_identity:
                return layer
        return None

    def others(self, layer: SourceLayer, reader: SourceLayer) -> list[str]:
        """Who else needs a layer's own result."""
        readers, outputs, pending = list[str](), list(layer.outputs), list(self.readers[layer.name])
        while pending:
            name = pending.pop(0)
            if self.layers[name].is_identity:
                pending += self.readers[name]
                outputs += self.layers[name].outputs
            elif name != reader.name:
                readers.append(name)
        return [*readers, *(f"the output {name!r}" for name in outputs)]


def _reason(layer: SourceLayer, model: _Model) -> str | None:
    if not model.positions[layer.name]:
        return _why_none(layer)
    if layer.kind in NORMALIZATIONS:
        return _why_not_folded(layer, model)
    if layer.kind in ACTIVATIONS:
        return _not_fusible(layer) or _apart(layer, model)
    if layer.kind in CONVOLUTIONS and layer.activation is not None and layer.activation not in FUSED:
        return f"its activation {layer.activation!r} has operators of its own: LiteRT's kernels have {_FUSIBLE} alone"
    return None


_FUSIBLE = " and ".join(sorted(FUSED))


def _why_none(layer: SourceLayer) -> str:
    if layer.is_identity:
        return "computes nothing once the model is trained"
    return "no operator bears its name: it changes nothing, was computed when the model was converted, or an equal layer's result is used"


def _not_fusible(layer: SourceLayer) -> str | None:
    if layer.activation in FUSED:
        return None
    return f"{layer.activation or layer.kind} isn't an activation of LiteRT's kernels, which have {_FUSIBLE} alone"


def _why_not_folded(layer: SourceLayer, model: _Model) -> str:
    before = model.before(layer)
    if before is not None and before.kind in CONVOLUTIONS and before.activation not in (None, "linear"):
        return f"{before.name!r} ends in an activation ({before.activation}), behind which a normalization can't be folded into the weights"
    return _apart(layer, model)


def _apart(layer: SourceLayer, model: _Model) -> str:
    before = model.before(layer)
    if before is None:
        return "stands behind an input of the model, or several layers: there is no operator with weights to be part of"
    others = model.others(before, layer)
    if others:
        return f"{before.name!r} is read by {', '.join(others)} too, so its result is needed as it is"
    if before.kind not in CONVOLUTIONS:
        return f"stands behind {before.name!r} ({before.kind}), which isn't a convolution or a dense layer"
    kinds = sorted({model.operators[position].kind for position in model.positions[before.name]} - MOVES)
    return f"LiteRT's converter doesn't make one operator of it and {before.name!r} ({', '.join(kinds) or 'no operator'})"
