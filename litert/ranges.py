"""The range of every float activation of a model over some data, in a form that merges.

Collected on the float flatbuffer itself, whose tensor names are those that the quantizer works with. Ranges are true minima and
maxima: merging is associative and commutative, with `EMPTY` as its neutral element, so any split of the data over workers
gives the same ranges. (litert-quantizer's own calibrator averages over samples instead, and the range of a scalar collapses.)
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, TensorRange, TensorRanges

EMPTY = TensorRanges(ranges={}, examples=0)


def merge(parts: Iterable[TensorRanges]) -> TensorRanges:
    """The ranges over the data of all parts together; a tensor that only some parts have keeps its range there.

    >>> a = TensorRanges(ranges={"x": TensorRange(min=0, max=1)}, examples=2)
    >>> b = TensorRanges(ranges={"x": TensorRange(min=-3, max=0)}, examples=1)
    >>> merge([a, b])
    TensorRanges(ranges={'x': TensorRange(min=-3.0, max=1.0)}, examples=3)
    """
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    examples = 0
    for part in parts:
        examples += part.examples
        for name, r in part.ranges.items():
            low[name] = min(low.get(name, r.min), r.min)
            high[name] = max(high.get(name, r.max), r.max)
    return TensorRanges(ranges={name: TensorRange(min=low[name], max=high[name]) for name in sorted(low)}, examples=examples)


def activations(model: bytes) -> dict[str, int]:
    """The float32 tensors of a model that depend on its inputs: those inputs and every operator's outputs, as index by name.

    Raises:
        EdgeError: not a flatbuffer, or two of the tensors have one name, so that no range can be told theirs.
    """
    graph = inspect.parse(model).subgraphs[0]
    found: dict[str, int] = {}
    for index in [*graph.inputs, *(index for op in graph.operators or () for index in op.outputs)]:
        tensor = graph.tensors[index]
        name = tensor.name.decode()
        if tensor.type != schema.TensorType.FLOAT32:
            continue
        if found.setdefault(name, int(index)) != int(index):
            raise EdgeError(f"the float flatbuffer has two tensors named {name!r}: their ranges can't be told apart; rename the layers")
    return found


class RangeCollector:
    """A loaded float model that gives the ranges of its activations over batches of examples.

    XNNPACK, through which LiteRT runs it, computes a row alike in whatever batch it stands, so the ranges don't depend on how
    the examples are cut into batches.
    """

    def __init__(self, model: bytes, name: str = "the float flatbuffer") -> None:
        """Loads a model.

        Args:
            model: a float flatbuffer.
            name: what to call it in an error.

        Raises:
            EdgeError: LiteRT can't load it, or its tensors' names aren't unique.
        """
        self._name = name
        self._tensors = activations(model)
        self._runner = Runner(model, name=name, observe=self._read)
        self._steps: list[TensorRanges] = []

    def __call__(self, features: Mapping[str, NDArray[Any]], source: str = "the calibration data") -> TensorRanges:
        """Runs a batch.

        Args:
            features: `[n, ...]` each, by feature name; may hold more than the model takes.
            source: what to call the batch in an error.

        Returns:
            The range of each activation over the batch; examples is n.

        Raises:
            EdgeError: the features don't fit the model's inputs, or an activation took NaN or Inf: the first such tensor is named.
        """
        self._steps = []
        outputs = self._runner(features, source)
        n = len(next(iter(outputs.values())))
        return merge([*self._steps, TensorRanges(ranges={}, examples=n)])

    def _read(self, interpreter: Interpreter) -> None:
        ranges = {}
        for name, index in self._tensors.items():
            values = interpreter.get_tensor(index)
            if values.size == 0:
                continue
            low, high = float(np.min(values)), float(np.max(values))
            if not np.isfinite([low, high]).all():
                raise EdgeError(
                    f"{self._name}: tensor {name!r} took {'NaN' if np.isnan(low) else 'Inf'} on the calibration data, so it has no range; "
                    "mend the feature or the weight that it comes from"
                )
            ranges[name] = TensorRange(min=low, max=high)
        self._steps.append(TensorRanges(ranges=ranges, examples=0))
