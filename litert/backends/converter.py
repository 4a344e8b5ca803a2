"""TFLiteConverter's post-training quantization of a float flatbuffer, with stored ranges in place of its calibration.

Its quantizer reads the ranges out of the flatbuffer, where its calibrator would have written them; so they can come from anywhere, and
no data is needed. It has an integer LSTM and gather, which litert-quantizer leaves in float. It needs TensorFlow, and can abort or
hang on models that it doesn't know: it runs in a process of its own.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.backends.litert import usable_ranges
from tfx_edge.litert.backends.wiring import check_wiring
from tfx_edge.litert.child import Note, call_in_child
from tfx_edge.litert.finish import finish
from tfx_edge.litert.packing import pack
from tfx_edge.schemas import EdgeError, QuantizationConfig, TensorRange, TensorRanges
from tfx_edge.schemas.schemes import IoType

TIME_LIMIT_S = 300.0

_LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"
_HIDDEN, _CELL = 18, 19  # inputs of the operator: variables that hold its state
_INTERMEDIATES = 5  # scales of four gates, which only layer normalization uses, and of the hidden state
_WIDEST_CELL = 64.0  # LiteRT's kernel takes no wider 16-bit cell state


def quantize(float_model: bytes, config: QuantizationConfig, ranges: TensorRanges | None, time_limit_s: float = TIME_LIMIT_S) -> bytes:
    """Quantizes a float flatbuffer.

    Args:
        float_model: as `litert.convert` gives it.
        config: of scheme `int8`, without rules.
        ranges: of every float activation.
        time_limit_s: seconds after which the converter is stopped.

    Returns:
        The flatbuffer; the same bytes of the same arguments and TensorFlow.

    Raises:
        EdgeError: another scheme, or rules; no ranges, or none of a tensor; the converter refused the model, died or took too long,
            or an operator would get a type that LiteRT has no kernel for.
    """
    if config.rules or config.scheme != "int8":
        what = "rules" if config.rules else f"scheme {config.scheme!r}"
        raise EdgeError(f"TFLiteConverter quantizes a flatbuffer by scheme 'int8' without rules, got {what}; set backend 'litert'")
    calibrated = with_ranges(float_model, usable_ranges(float_model, ranges))
    try:
        made = call_in_child(_in_child, calibrated, config.granularity == "tensor", config.io_type, time_limit_s=time_limit_s)
    except RuntimeError as error:
        raise EdgeError(f"TFLiteConverter's quantizer died: {' '.join(str(error).split())[-300:]}") from error
    parsed = inspect.parse(made)
    finish(parsed)
    check_wiring(parsed)
    return pack(parsed)


def with_ranges(float_model: bytes, ranges: Mapping[int, TensorRange]) -> bytes:
    """Writes ranges into a flatbuffer, where TFLiteConverter's quantizer looks for them.

    Args:
        float_model: with one graph.
        ranges: by index of the tensor in it.

    Returns:
        The flatbuffer. An LSTM has its state's ranges too: its hidden state is its last output. Its cell adds at most 1 a step, which
        bounds it by the number of steps; it is held in 16 bits, so the bound needn't be close. (TFLiteConverter's calibrator takes -10 to
        10 for it, whatever it sees.)
    """
    parsed = inspect.parse(float_model)
    graph = parsed.subgraphs[0]
    for index, tensor_range in ranges.items():
        _write(graph.tensors[index], tensor_range)
    for _, op, kind, _ in list(inspect.named_operators(parsed)):
        if kind != _LSTM:
            continue
        output = ranges[int(op.outputs[0])]
        hidden = TensorRange(min=min(output.min, 0.0), max=max(output.max, 0.0))
        steps = graph.tensors[op.inputs[0]].shape[0 if op.builtinOptions.timeMajor else 1]
        cell = op.builtinOptions.cellClip or min(float(max(steps, 1)), _WIDEST_CELL)
        _write(graph.tensors[op.inputs[_HIDDEN]], hidden)
        _write(graph.tensors[op.inputs[_CELL]], TensorRange(min=-cell, max=cell))
        op.intermediates = [_intermediate(graph, f"{i}") for i in range(_INTERMEDIATES)]
        _write(graph.tensors[op.intermediates[-1]], hidden)
    return pack(parsed)


def _write(tensor: Any, tensor_range: TensorRange) -> None:
    if tensor.quantization is None:
        tensor.quantization = schema.QuantizationParametersT()
    low, high = float(tensor_range.min), float(tensor_range.max)
    if not math.isfinite(low) or not math.isfinite(high):
        raise EdgeError(f"tensor {tensor.name.decode()!r} has the range {low:g} to {high:g}, expected finite numbers; calibrate again")
    tensor.quantization.min, tensor.quantization.max = np.array([low], np.float32), np.array([high], np.float32)


def _intermediate(graph: Any, name: str) -> int:
    tensor = schema.TensorT()
    tensor.name, tensor.type, tensor.shape = f"intermediate_{len(graph.tensors)}_{name}".encode(), schema.TensorType.FLOAT32, [0]
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _in_child(note: Note, model: bytes, one_scale: bool, io_type: IoType) -> bytes:
    note("TFLiteConverter's quantizer")
    from tensorflow.lite.python.convert import mlir_quantize
    from tensorflow.python.framework import dtypes

    io = dtypes.as_dtype(io_type)
    try:
        result: bytes = mlir_quantize(
            model, disable_per_channel=one_scale, fully_quantize=io_type != "float32", input_data_type=io, output_data_type=io
        )
    except Exception as error:
        words = " ".join(str(error).split())[-500:] or type(error).__name__
        raise EdgeError(f"TFLiteConverter's quantizer refused the model: {words}") from error
    return bytes(result)
