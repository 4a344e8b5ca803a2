"""Where a quantized model loses accuracy: each operator's output against the same tensor of the float flatbuffer.

    errors = layer_errors(float_model, candidate, features)
    errors.worst[0].op, errors.worst[0].tensor   # look here first

Both flatbuffers run on the same examples with all tensors kept. Quantizers keep the names of the tensors that they quantize, so
outputs are matched by name.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.ranges import activations
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.statistics import LayerError, LayerErrors

_BATCH = 32

# 40 dB, about what rounding to int8 costs: a loss above it is no news, and relative to nothing it would be infinite.
_FLOOR = 1e-4


def layer_errors(float_model: bytes, candidate: bytes, features: Mapping[str, NDArray[Any]]) -> LayerErrors:
    """Compares a candidate with the float flatbuffer it was made from, operator by operator.

    Noise is the sum of squared errors over the sum of squared float values of a tensor; what an operator adds to that of its
    inputs tells where the loss arises, and what only carries it on.

    Args:
        float_model: the float flatbuffer.
        candidate: the flatbuffer to look into; its quantized tensors are compared as the real values they stand for.
        features: `[n, ...]` each, by feature name, n at least 1; some hundred examples do.

    Raises:
        EdgeError: one of them can't run on the features, they are fixed to different batch sizes, two float tensors have one name,
            or there are no examples.
    """
    reference, other = _Tensors(float_model, "the float flatbuffer"), _Tensors(candidate, "the candidate")
    batch = _batch(reference.runner, other.runner)
    count = min((len(values) for values in features.values()), default=0)
    if count == 0:
        raise EdgeError("layer errors: no examples; give at least one")
    names = {name: index for name, index in activations(float_model).items() if name in other.indices}
    sums: dict[str, _Sums] = {}
    for start in range(0, count, batch):
        # Filled up with the last example, so that a ragged end has the shape of a model with a fixed batch.
        rows = np.minimum(np.arange(start, start + batch), count - 1)
        chunk = {name: values[rows] for name, values in features.items()}
        expected = reference.read(chunk, names)
        found = other.read(chunk, {name: other.indices[name] for name in names})
        for name in names:
            if expected[name].shape == found[name].shape:
                sums.setdefault(name, _Sums()).add(expected[name], found[name])
    layers = tuple(_layers(float_model, sums))
    outputs = {name for op in _operators(float_model) for name in op.outputs} & set(activations(float_model))
    only = other.outputs - outputs
    return LayerErrors(layers=layers, examples=count, skipped=len(outputs - sums.keys()) + len(only))


class _Sums:
    """Errors of one tensor over the batches so far."""

    def __init__(self) -> None:
        self.values = 0
        self.signal = self.squares = self.error = self.worst = 0.0

    def add(self, expected: NDArray[Any], found: NDArray[Any]) -> None:
        error = np.abs(found - expected)
        self.values += expected.size
        self.signal += float((expected**2).sum())
        self.squares += float((error**2).sum())
        self.error += float(error.sum())
        self.worst = max(self.worst, float(error.max(initial=0.0)))

    @property
    def noise(self) -> float:
        return self.squares / self.signal if self.signal > 0 else self.squares


class _Tensors:
    """A loaded model with all its tensors to read as real values."""

    def __init__(self, model: bytes, name: str) -> None:
        operators = list(_operators(model))
        produced = [tensor for op in operators for tensor in zip(op.outputs, op.output_indices, strict=True)]
        graph = inspect.parse(model).subgraphs[0]
        inputs = [(graph.tensors[index].name.decode(), int(index)) for index in graph.inputs]
        every = [n for n, _ in (*inputs, *produced)]
        self.indices = {n: index for n, index in (*inputs, *produced) if every.count(n) == 1}
        # A conversion is no operator of the model's own.
        self.outputs = {n for op in operators if op.name not in ("QUANTIZE", "DEQUANTIZE") for n in op.outputs}
        self.runner = Runner(model, name=name, observe=self._keep)

    def _keep(self, interpreter: Interpreter) -> None:
        details = {d["index"]: d["quantization_parameters"] for d in interpreter.get_tensor_details()}
        self._kept = {n: _real(interpreter.get_tensor(i), details[i]) for n, i in self._wanted.items()}

    def read(self, features: Mapping[str, NDArray[Any]], wanted: Mapping[str, int]) -> dict[str, NDArray[np.float64]]:
        self._wanted = wanted
        self.runner(features)
        return self._kept


def _real(values: NDArray[Any], quantization: Mapping[str, Any]) -> NDArray[np.float64]:
    real = values.astype(np.float64)
    scales, zero_points = quantization["scales"], quantization["zero_points"]
    return (real - zero_points[0]) * scales[0] if len(scales) == 1 and values.dtype.kind in "iu" else real


def _batch(reference: Runner, candidate: Runner) -> int:
    fixed = {size for size in (reference.batch_size, candidate.batch_size) if size is not None}
    if len(fixed) > 1:
        raise EdgeError(
            f"layer errors: the float flatbuffer is fixed to batches of {reference.batch_size}, the candidate to "
            f"{candidate.batch_size}; export both with one batch size"
        )
    return next(iter(fixed), _BATCH)


class _Operator:
    """One operator of the main graph, by the names of its tensors."""

    def __init__(self, name: str, tensors: list[str], op: Any) -> None:
        self.name = name
        self.inputs = [tensors[i] for i in op.inputs if i >= 0]
        self.output_indices = [int(i) for i in op.outputs]
        self.outputs = [tensors[i] for i in self.output_indices]


def _operators(model: bytes) -> Iterator[_Operator]:
    """In the order of execution."""
    parsed = inspect.parse(model)
    graph = parsed.subgraphs[0]
    tensors = [tensor.name.decode() for tensor in graph.tensors]
    for op in graph.operators or ():
        yield _Operator(inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]), tensors, op)


def _layers(float_model: bytes, sums: Mapping[str, _Sums]) -> Iterator[LayerError]:
    noise = {name: s.noise for name, s in sums.items()}
    for op in _operators(float_model):
        before = max((noise.get(name, 0.0) for name in op.inputs), default=0.0)
        for name in op.outputs:
            s = sums.get(name)
            if s is None:
                noise[name] = before  # not compared: what goes in comes out
                continue
            yield LayerError(
                op=op.name,
                tensor=name,
                sqnr_db=float(10 * (np.log10(s.signal) - np.log10(s.squares))) if s.signal > 0 and s.squares > 0 else None,
                mean_abs_error=s.error / s.values,
                worst_abs_error=s.worst,
                loss_db=max(0.0, float(10 * np.log10((s.noise + _FLOOR) / (before + _FLOOR)))),
            )
