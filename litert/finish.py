"""What litert-quantizer leaves undone in the file that it writes.

1. Above 256 KiB it keeps weights behind the flatbuffer, where runtimes before 2.15 and TensorFlow Lite Micro don't look.
2. Tensors that it adds have no shape signature, so an output of any batch size reads as one of batch size 1.
3. The minimum runtime stays that of the float model, although quantized kernels are newer.
"""

from typing import Any

from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect

# Oldest TensorFlow Lite release with an operator's int8 kernel, as LiteRT's tflite/tools/versioning (op_version.cc and
# runtime_version.cc) has it. Operators that aren't here have no kernel version for int8.
_INT8 = {
    name: version
    for version, names in {
        "1.14.0": "ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEQUANTIZE EQUAL FULLY_CONNECTED GATHER LOGISTIC MAXIMUM "
        "MAX_POOL_2D MEAN NOT_EQUAL PACK PAD PADV2 QUANTIZE REDUCE_MIN RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SELECT SLICE SOFTMAX "
        "SPACE_TO_DEPTH SPLIT STRIDED_SLICE SUB TANH TRANSPOSE UNPACK",
        "1.15.0": "HARD_SWISH MUL SUM",
        "2.1.0": "RELU",
        "2.2.0": "TRANSPOSE_CONV",
        "2.3.0": "BATCH_MATMUL MIRROR_PAD",
        "2.5.0": "BROADCAST_TO RSQRT SQUARED_DIFFERENCE",
        "2.9.0": "GELU",
    }.items()
    for name in names.split()
}
# The same for float activations and int8 weights with a scale per channel.
_INT8_WEIGHTS = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "1.14.0",
    "DEPTHWISE_CONV_2D": "2.3.0",
    "CONV_2D": "2.4.0",
    "FULLY_CONNECTED": "2.17.0",
    "EMBEDDING_LOOKUP": "2.18.0",
}
_FLOAT16_WEIGHTS = {"DEQUANTIZE": "1.15.0"}


def finish(parsed: Any) -> None:
    """Mends the last two things, `pack` the first; computes nothing anew, so predictions stay the same.

    Args:
        parsed: what litert-quantizer wrote, as `inspect.parse` gives it. It gets shape signatures and the minimum runtime of its operators.
    """
    for graph in parsed.subgraphs:
        for op in graph.operators or ():
            if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) in ("QUANTIZE", "DEQUANTIZE"):
                source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
                if result.shapeSignature is None:
                    result.shapeSignature = source.shapeSignature
    written = inspect.written_runtime(parsed)
    if written is not None:
        inspect.write_runtime(parsed, [written, *_needs(parsed), *inspect.int4_runtimes(parsed)])


def _needs(parsed: Any) -> set[str]:
    found = set()
    for graph in parsed.subgraphs:
        for op in graph.operators or ():
            name = inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])
            inputs = {graph.tensors[i].type for i in op.inputs if i >= 0}
            outputs = {graph.tensors[i].type for i in op.outputs}
            if schema.TensorType.FLOAT16 in inputs:
                found.add(_FLOAT16_WEIGHTS.get(name))
            elif schema.TensorType.INT8 in outputs or (name == "DEQUANTIZE" and schema.TensorType.INT8 in inputs):
                found.add(_INT8.get(name))
            elif schema.TensorType.INT8 in inputs:
                found.add(_INT8_WEIGHTS.get(name))
    return {version for version in found if version is not None}
