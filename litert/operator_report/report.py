"""The report: every operator with its cost, every layer with its operators."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tfx_edge.litert import inspect
from tfx_edge.litert.fields import text
from tfx_edge.litert.macs import count_macs
from tfx_edge.litert.operator_report.attribution import attribute
from tfx_edge.litert.operator_report.fusion import layer_operators
from tfx_edge.litert.operator_report.reading import Operator, read_operators
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.operators import OperatorCost, OperatorsReport, OperatorTotals, SourceLayer


def operator_report(model: bytes, layers: Sequence[SourceLayer] = ()) -> OperatorsReport:
    """Reports what each operator of a flatbuffer costs, and what became of each layer.

    Nothing is run. An operator that isn't known is reported as what the file says of it.

    Args:
        model: a flatbuffer.
        layers: of the Keras model that it was converted from, in its order, each behind those that it reads, as
            `optimize.source_layers` gives them; without them the report is of operators alone.

    Raises:
        EdgeError: not a flatbuffer, or a damaged one.
    """
    parsed = inspect.parse(model)
    try:
        return _report(parsed, layers)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise EdgeError(
            f"a damaged LiteRT flatbuffer ({len(model)} bytes): {type(error).__name__} {' '.join(str(error).split()):.200}; "
            "export the model again"
        ) from error


def _report(parsed: Any, layers: Sequence[SourceLayer]) -> OperatorsReport:
    operators = list(read_operators(parsed))
    attributed = attribute(operators, layers, _outputs(parsed))
    costs = tuple(_cost(op, names) for op, names in zip(operators, attributed, strict=True))
    constants = {constant.buffer: constant for op in operators for constant in op.constants}.values()
    return OperatorsReport(
        totals=OperatorTotals(
            operators=len(costs),
            macs=sum(cost.macs or 0 for cost in costs),
            uncounted=dict(sorted(Counter(cost.kind for cost in costs if cost.macs is None).items())),
            parameters=_parameters(constants),
            constant_bytes=sum(constant.size for constant in constants),
        ),
        operators=costs,
        layers=tuple(layer_operators(operators, attributed, layers)),
    )


def _cost(op: Operator, names: tuple[str, ...]) -> OperatorCost:
    constants = {constant.buffer: constant for constant in op.constants}.values()
    macs = count_macs(op.kind, op.input_extents, op.output_extents, op.options)
    return OperatorCost(
        graph=op.graph,
        kind=op.kind,
        version=op.version,
        name=op.name,
        layers=names,
        activation=op.activation,
        macs=macs if macs is None or macs % op.batch else macs // op.batch,
        parameters=_parameters(constants),
        constant_bytes=sum(constant.size for constant in constants),
        shape=op.shape,
        dtype=op.dtype,
        computes_in=_computes_in(op),
    )


def _parameters(constants: Any) -> int:
    return sum(constant.elements for constant in constants if constant.is_real)


_INTEGERS = ("int4", "int8", "uint8")


def _computes_in(op: Operator) -> str:
    if op.kind in ("DEQUANTIZE", "QUANTIZE"):
        return "conversion"
    if op.kind in ("RANK", "SHAPE"):
        return op.dtype
    types = set(op.reals)
    if len(types) > 1:
        return "conversion"
    if not types:
        return op.dtype
    [only] = types
    integers = any(constant.is_real and constant.dtype in _INTEGERS for constant in op.constants if not constant.unpacked)
    return "hybrid" if only == "float32" and integers else only


def _outputs(parsed: Any) -> dict[tuple[int, int], str]:
    """Names of the signatures' outputs by graph and tensor; where several signatures have one, the first's."""
    found: dict[tuple[int, int], str] = {}
    for signature in parsed.signatureDefs or ():
        for output in signature.outputs or ():
            found.setdefault((int(signature.subgraphIndex), int(output.tensorIndex)), text(output.name))
    return found
