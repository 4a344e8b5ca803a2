"""Seeded damages of a flatbuffer: those that ruin it, those that keep LiteRT from running it, and some too small to matter.

    description, damaged = damage(model, seed)

Needs neither TensorFlow nor TFX, so a process that tries what comes of it starts fast.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import Builder
from numpy.typing import NDArray

Edit = Callable[[Any, np.random.Generator], str]  # changes the flatbuffer's object form, says what it did


def damage(model: bytes, seed: int) -> tuple[str, bytes]:
    """One damage, the kinds in turn by seed.

    Returns:
        What was done, and the damaged flatbuffer.
    """
    rng = np.random.default_rng(seed)
    kind = _KINDS[seed % len(_KINDS)]
    return kind(model, rng)


def _edit(edit: Edit) -> Callable[[bytes, np.random.Generator], tuple[str, bytes]]:
    def kind(model: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
        parsed = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model, 0))
        description = edit(parsed, rng)
        builder = Builder(len(model))
        builder.Finish(parsed.Pack(builder), b"TFL3")
        return description, bytes(builder.Output())

    return kind


_WIDTHS = {schema.TensorType.FLOAT32: np.float32, schema.TensorType.INT32: np.int32, schema.TensorType.INT8: np.int8}


def _constants(parsed: Any, *types: Any, rank: int = 1) -> list[Any]:
    return [
        t
        for t in parsed.subgraphs[0].tensors
        if t.type in (types or _WIDTHS)
        and parsed.buffers[t.buffer].data is not None
        and len(t.shape if t.shape is not None else ()) >= rank
    ]


def _pick(rng: np.random.Generator, things: Sequence[Any]) -> Any:
    return things[rng.integers(len(things))]


def _values(parsed: Any, tensor: Any) -> NDArray[Any]:
    data = np.array(parsed.buffers[tensor.buffer].data, np.uint8)
    return data.view(_WIDTHS[tensor.type]).reshape([int(d) for d in tensor.shape])


def _put(parsed: Any, tensor: Any, values: NDArray[Any]) -> None:
    parsed.buffers[tensor.buffer].data = np.frombuffer(np.ascontiguousarray(values, _WIDTHS[tensor.type]).tobytes(), np.uint8)


def _name(tensor: Any) -> str:
    return f"tensor {tensor.name.decode()!r:.60}"


def _flip_low_bit(parsed: Any, rng: np.random.Generator) -> str:
    tensor = _pick(rng, _constants(parsed))
    data = np.array(parsed.buffers[tensor.buffer].data, np.uint8)
    width = np.dtype(_WIDTHS[tensor.type]).itemsize
    at = width * int(rng.integers(len(data) // width))
    data[at] ^= 1  # flatbuffers are little-endian
    parsed.buffers[tensor.buffer].data = data
    return f"lowest bit of value {at // width} of {_name(tensor)} flipped"


def _flip_bits(parsed: Any, rng: np.random.Generator) -> str:
    tensor, count = _pick(rng, _constants(parsed)), int(rng.choice([1, 2, 4, 16]))
    data = np.array(parsed.buffers[tensor.buffer].data, np.uint8)
    for at in rng.integers(8 * len(data), size=count):
        data[at // 8] ^= 1 << (at % 8)
    parsed.buffers[tensor.buffer].data = data
    return f"{count} bits of {_name(tensor)} flipped"


def _zero(parsed: Any, rng: np.random.Generator) -> str:
    tensor, share = _pick(rng, _constants(parsed)), float(rng.choice([0.01, 0.05, 0.2, 1.0]))
    values = _values(parsed, tensor)
    _put(parsed, tensor, np.where(rng.random(values.shape) < share, 0, values))
    return f"{share:.0%} of {_name(tensor)} zeroed"


def _shuffle(parsed: Any, rng: np.random.Generator) -> str:
    tensor, pairs = _pick(rng, _constants(parsed)), int(rng.choice([1, 2, 8, 64]))
    values = _values(parsed, tensor).ravel()
    for _ in range(pairs):
        i, j = rng.integers(len(values), size=2)
        values[[i, j]] = values[[j, i]]
    _put(parsed, tensor, values)
    return f"{pairs} pairs of values of {_name(tensor)} swapped"


def _scale_values(parsed: Any, rng: np.random.Generator) -> str:
    tensor, factor = _pick(rng, _constants(parsed)), float(rng.choice([-1, 0.5, 0.9, 0.99, 1.02, 1.2, 2, 1e30]))
    values = _values(parsed, tensor)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            _put(parsed, tensor, values * np.float32(factor))
    else:
        info = np.iinfo(values.dtype)
        _put(parsed, tensor, np.clip(np.rint(values * factor), info.min, info.max))
    return f"{_name(tensor)} times {factor:g}"


def _not_a_number(parsed: Any, rng: np.random.Generator) -> str:
    floats = _constants(parsed, schema.TensorType.FLOAT32)
    if not floats:
        return _scale(parsed, rng)
    tensor, value = _pick(rng, floats), float(rng.choice([np.nan, np.inf, -np.inf, 1e38]))
    values = _values(parsed, tensor)
    values.ravel()[rng.integers(values.size)] = value
    _put(parsed, tensor, values)
    return f"a value of {_name(tensor)} made {value}"


def _quantized(parsed: Any) -> list[Any]:
    return [t for t in parsed.subgraphs[0].tensors if t.quantization is not None and t.quantization.scale is not None]


def _scale(parsed: Any, rng: np.random.Generator) -> str:
    tensors = _quantized(parsed)
    if not tensors:
        return _scale_values(parsed, rng)
    tensor, factor = _pick(rng, tensors), float(rng.choice([0.5, 0.8, 0.98, 1.0001, 1.05, 1.3, 2, 100, 0, -1, np.nan, np.inf]))
    scales = np.array(tensor.quantization.scale, np.float32)
    at = slice(None) if rng.random() < 0.5 else int(rng.integers(len(scales)))
    with np.errstate(all="ignore"):
        scales[at] *= np.float32(factor)
    tensor.quantization.scale = scales
    return f"scale of {_name(tensor)} times {factor:g}"


def _zero_point(parsed: Any, rng: np.random.Generator) -> str:
    tensors = _quantized(parsed)
    if not tensors:
        return _shuffle(parsed, rng)
    tensor, shift = _pick(rng, tensors), int(rng.choice([-100, -20, -5, -1, 1, 5, 20, 100, 1000]))
    points = np.array(tensor.quantization.zeroPoint, np.int64)
    points[int(rng.integers(len(points)))] += shift
    tensor.quantization.zeroPoint = points
    return f"zero point of {_name(tensor)} moved by {shift}"


def _layers(parsed: Any) -> list[Any]:
    """The fully connected ones."""
    graph, codes = parsed.subgraphs[0], parsed.operatorCodes
    return [op for op in graph.operators if codes[op.opcodeIndex].builtinCode == schema.BuiltinOperator.FULLY_CONNECTED]


def _swap_outputs(parsed: Any, rng: np.random.Generator) -> str:
    """Weights, bias and scales of two channels change places: of the last layer's, two labels."""
    layer = _pick(rng, [_layers(parsed)[-1]] * 2 + _layers(parsed))
    tensors = [parsed.subgraphs[0].tensors[i] for i in layer.inputs[1:] if i >= 0]
    channels = int(tensors[0].shape[0])
    i, j = rng.choice(channels, size=2, replace=False)
    for tensor in tensors:
        values = _values(parsed, tensor)
        values[[i, j]] = values[[j, i]]
        _put(parsed, tensor, values)
        if tensor.quantization is not None and tensor.quantization.scale is not None and len(tensor.quantization.scale) == channels:
            scales = np.array(tensor.quantization.scale, np.float32)
            scales[[i, j]] = scales[[j, i]]
            tensor.quantization.scale = scales
    return f"channels {i} and {j} of the output of {_name(tensors[0])} swapped"


def _swap_channels(parsed: Any, rng: np.random.Generator) -> str:
    layer = _pick(rng, _layers(parsed))
    weights = parsed.subgraphs[0].tensors[layer.inputs[1]]
    values = _values(parsed, weights)
    i, j = rng.choice(values.shape[1], size=2, replace=False)
    values[:, [i, j]] = values[:, [j, i]]
    _put(parsed, weights, values)
    return f"channels {i} and {j} of the input of {_name(weights)} swapped"


def _swap_inputs(parsed: Any, rng: np.random.Generator) -> str:
    if rng.random() < 0.5:
        first, second = parsed.signatureDefs[0].inputs[:2]
        first.tensorIndex, second.tensorIndex = second.tensorIndex, first.tensorIndex
        return "the signature's inputs swapped"
    operator = _pick(rng, [op for op in parsed.subgraphs[0].operators if len(op.inputs) > 1])
    inputs = list(operator.inputs)
    i, j = rng.choice(len(inputs), size=2, replace=False)
    inputs[i], inputs[j] = inputs[j], inputs[i]
    operator.inputs = inputs
    return f"inputs {i} and {j} of an operator swapped"


def _signature(parsed: Any, rng: np.random.Generator) -> str:
    signature = parsed.signatureDefs[0]
    kind = int(rng.integers(9))
    if kind == 0:
        signature.inputs[0].name = b"y"
    elif kind == 1:
        signature.outputs[0].name = b"other"  # which output is meant stays clear
    elif kind == 2:
        signature.signatureKey = b"other"  # which signature is meant stays clear
    elif kind == 3:
        del signature.inputs[0]
    elif kind == 4:
        signature.outputs[0].tensorIndex = int(rng.integers(len(parsed.subgraphs[0].tensors)))
    elif kind == 5:
        signature.subgraphIndex = 1
    elif kind == 6:
        parsed.signatureDefs = []
    elif kind == 7:
        signature.inputs[0].tensorIndex = signature.inputs[1].tensorIndex
    else:
        signature.inputs[0].tensorIndex = 10_000
    what = ("input renamed", "output renamed", "key renamed", "input dropped", "output another tensor", "graph that isn't there")
    return f"signature: {(*what, 'gone', 'one tensor for both inputs', 'tensor that is not there')[kind]}"


def _operator(parsed: Any, rng: np.random.Generator) -> str:
    operators, kind = parsed.subgraphs[0].operators, int(rng.integers(4))
    if kind == 0:
        code = _pick(rng, parsed.operatorCodes)
        code.builtinCode = code.deprecatedBuiltinCode = int(rng.integers(120))
        return f"an operator made number {code.builtinCode}"
    if kind == 1:
        for layer in _layers(parsed)[:1]:
            layer.builtinOptions.fusedActivationFunction = int(rng.integers(6))
        return "the first layer's activation changed"
    if kind == 2:
        at = int(rng.integers(len(operators)))
        del operators[at]
        return f"operator {at} dropped"
    parsed.operatorCodes[-1].version = int(rng.choice([1, 2, 99]))
    return "an operator's version changed"


def _tensor(parsed: Any, rng: np.random.Generator) -> str:
    tensor, kind = _pick(rng, parsed.subgraphs[0].tensors), int(rng.integers(4))
    if kind == 0:
        tensor.type = int(rng.integers(17))
        return f"type of {_name(tensor)} made {tensor.type}"
    if kind == 1 and tensor.shape is not None and len(tensor.shape):
        shape = np.array(tensor.shape, np.int32)
        at = int(rng.integers(len(shape)))
        shape[at] += int(rng.choice([-1, 1, 10]))
        tensor.shape, tensor.shapeSignature = shape, None if rng.random() < 0.5 else tensor.shapeSignature
        return f"shape of {_name(tensor)} made {shape.tolist()}"
    if kind == 2:
        tensor.quantization = None
        return f"quantization of {_name(tensor)} dropped"
    tensor.buffer = int(rng.integers(len(parsed.buffers)))
    return f"{_name(tensor)} given buffer {tensor.buffer}"


def _runtime(parsed: Any, rng: np.random.Generator) -> str:
    version = _pick(rng, [b"1.5.0", b"2.3.0", b"2.21.0", b"2.99.0", b"10.0", b"UNKNOWN", b""])
    for entry in parsed.metadata or ():
        if entry.name == b"min_runtime_version":
            parsed.buffers[entry.buffer].data = np.frombuffer(version.ljust(16, b"\0"), np.uint8)
    return f"runtime needed made {version.decode()!r}"


def _truncate(model: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    lost = int(rng.integers(1, 40 if rng.random() < 0.3 else len(model)))
    return f"last {lost} bytes cut off", model[:-lost]


def _append(model: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    return "bytes appended", model + rng.bytes(int(rng.integers(1, 64)))


def _flip_bytes(model: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    count = int(rng.choice([1, 2, 8]))
    data = np.frombuffer(model, np.uint8).copy()
    data[rng.integers(len(data), size=count)] ^= rng.integers(1, 256, size=count, dtype=np.uint8)
    return f"{count} bytes anywhere changed", data.tobytes()


def _zero_bytes(model: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    at, count = int(rng.integers(len(model))), int(rng.choice([4, 64]))
    zeroed = model[:at] + bytes(len(model[at : at + count])) + model[at + count :]
    return f"{count} bytes zeroed at {at}", zeroed


_EDITS: tuple[Edit, ...] = (
    *(_flip_low_bit, _flip_bits, _zero, _shuffle, _scale_values, _not_a_number, _scale, _scale, _zero_point, _zero_point),
    *(_swap_outputs, _swap_channels, _swap_inputs, _signature, _operator, _tensor, _runtime),
)
_KINDS = (*map(_edit, _EDITS), _truncate, _append, _flip_bytes, _flip_bytes, _zero_bytes)
