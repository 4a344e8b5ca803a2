"""The operators of a flatbuffer, and rules that name exactly one of them or all but one."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tfx_edge.litert import inspect
from tfx_edge.schemas import SchemeRule
from tfx_edge.schemas.schemes import Scheme


@dataclass(frozen=True)
class Operator:
    """An operator that a rule can name: no other has its first output's name.

    Attributes:
        kind: LiteRT's name, for example CONV_2D.
        outputs: names of its outputs, the first of which names it in plans and reports.
        weight_bytes: of the constants that it reads, in the float flatbuffer.
    """

    kind: str
    outputs: tuple[str, ...]
    weight_bytes: int

    @property
    def tensor(self) -> str:
        """What it is called: its first output."""
        return self.outputs[0]

    def at(self, scheme: Scheme) -> SchemeRule:
        """The rule that gives this operator, and no other, a scheme."""
        return SchemeRule(operator=self.kind, tensor=f"^{self._pattern}$", scheme=scheme)

    def alone(self) -> SchemeRule:
        """The rule that leaves every operator but this one in float."""
        return SchemeRule(tensor=f"^(?!{self._pattern}$)", scheme="float32")

    @property
    def _pattern(self) -> str:
        """Matches the first output, which `SchemeRule` looks at, and all outputs with a semicolon behind each, as litert-quantizer does.

        A converter's names have semicolons too: without the end, `a` would also name the operator whose output is `a;b`.
        """
        rest = "".join(f"{re.escape(name)};" for name in self.outputs[1:])
        return f"{re.escape(self.tensor)}(?:;{rest})?"


def quantized_operators(float_model: bytes, candidate: bytes | None) -> tuple[Operator, ...]:
    """The operators of a float flatbuffer that a candidate computes otherwise, in the order of execution.

    Those that are alike in both (an operator without an integer form, one on text or indices) can't lose anything. One whose output
    has another name in the candidate counts as changed, and without a candidate every operator does.
    """
    parsed = inspect.parse(float_model)
    before, after = dict(_types(parsed)), {} if candidate is None else dict(_types(inspect.parse(candidate)))
    every = list(_operators(parsed))
    times = Counter(op.tensor for op in every)
    return tuple(op for op in every if op.tensor and times[op.tensor] == 1 and after.get(op.tensor) != before[op.tensor])


def _operators(parsed: Any) -> Iterator[Operator]:
    for graph in parsed.subgraphs:
        for op in graph.operators or ():
            constants = {i: parsed.buffers[graph.tensors[i].buffer].data for i in op.inputs if i >= 0}
            yield Operator(
                kind=inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]),
                outputs=tuple(graph.tensors[i].name.decode() for i in op.outputs) or ("",),
                weight_bytes=sum(len(data) for data in constants.values() if data is not None),
            )


def _types(parsed: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each operator's first output with the types of all that it reads and writes, weights as the file stores them."""
    for graph in parsed.subgraphs:
        stored = dict(_stored_types(parsed, graph))
        for op in graph.operators or ():
            if len(op.outputs):
                indices = [i for i in (*op.inputs, *op.outputs) if i >= 0]
                yield graph.tensors[op.outputs[0]].name.decode(), tuple(stored.get(i, graph.tensors[i].type) for i in indices)


def _stored_types(parsed: Any, graph: Any) -> Iterable[tuple[int, int]]:
    """The tensors that are a constant's real values, by index, with the type that the constant is stored in."""
    for op in graph.operators or ():
        if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) == "DEQUANTIZE":
            source = graph.tensors[op.inputs[0]]
            if parsed.buffers[source.buffer].data is not None:
                yield op.outputs[0], source.type
