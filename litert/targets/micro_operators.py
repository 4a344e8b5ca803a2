"""The operators of TensorFlow Lite Micro, and the method by which firmware registers each.

Operators: those that the interpreter of tflite-micro 0.dev20261023182759 finds, asked with a model of each of LiteRT's operators.
Methods: tensorflow/lite/micro/micro_mutable_op_resolver.h of https://github.com/tensorflow/tflite-micro.
"""

from collections.abc import Iterable

from tfx_edge.schemas import EdgeError

_NAMES = """
    ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_ARGS BROADCAST_TO
    CALL_ONCE CAST CEIL CONCATENATION CONV_2D COS CUMSUM DEPTH_TO_SPACE DEPTHWISE_CONV_2D DEQUANTIZE DIV DYNAMIC_UPDATE_SLICE ELU
    EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER GATHER_ND GREATER GREATER_EQUAL
    HARD_SWISH IF L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS LESS_EQUAL LOG LOG_SOFTMAX LOGICAL_AND LOGICAL_NOT LOGICAL_OR
    LOGISTIC MAX_POOL_2D MAXIMUM MEAN MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL PACK PAD PADV2 PRELU QUANTIZE READ_VARIABLE REDUCE_ALL
    REDUCE_MAX REDUCE_MIN RELU RELU6 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT SELECT_V2 SHAPE SIN
    SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM SVDF
    TANH TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK VAR_HANDLE WHILE ZEROS_LIKE
"""
OPERATORS = frozenset(_NAMES.split())

# Those whose method isn't the operator's words run together, each with a capital.
_SPELLED = {
    "AVERAGE_POOL_2D": "AveragePool2D",
    "BATCH_MATMUL": "BatchMatMul",
    "CONV_2D": "Conv2D",
    "CUMSUM": "CumSum",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2D",
    "L2_POOL_2D": "L2Pool2D",
    "MAX_POOL_2D": "MaxPool2D",
    "PADV2": "PadV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
    "custom:ethos-u": "EthosU",
}


def registration(operator: str) -> str | None:
    """The method of `MicroMutableOpResolver` that registers an operator, by LiteRT's name; None where there is none.

    >>> registration("FULLY_CONNECTED"), registration("CONV_2D"), registration("TOPK_V2")
    ('AddFullyConnected', 'AddConv2D', None)
    """
    if operator in _SPELLED:
        return f"Add{_SPELLED[operator]}"
    return "Add" + "".join(word.capitalize() for word in operator.split("_")) if operator in OPERATORS else None


def registrations(operators: Iterable[str]) -> list[str]:
    """The methods that register all operators of a model, sorted, each once.

    Raises:
        EdgeError: TensorFlow Lite Micro lacks some, or there is none.
    """
    methods = {operator: registration(operator) for operator in operators}
    missing = sorted(operator for operator, method in methods.items() if method is None)
    if missing:
        raise EdgeError(f"TensorFlow Lite Micro has no operator {', '.join(missing)}; replace the layers that use them")
    if not methods:
        raise EdgeError("the model has no operator, so there is nothing to run; export a model that computes something")
    return sorted(method for method in methods.values() if method is not None)
