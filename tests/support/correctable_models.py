"""Small float flatbuffers whose weights lose much when they become integers, each for a reason of its own."""

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray
from tiny_flatbuffers import Graph, Op, Tensor, pack

RELU, RELU6, NONE = (getattr(schema.ActivationFunctionType, name) for name in ("RELU", "RELU6", "NONE"))


def dense(name: str, x: Tensor, weights: NDArray[Any], bias: NDArray[Any] | None, activation: int = NONE) -> Op:
    """A FULLY_CONNECTED of weights `[outputs, inputs]`."""
    return Op(
        "FULLY_CONNECTED", (x, _constant(f"{name}/w", weights), _bias(name, bias)), (_dense_output(name, x, weights),), _fused(activation)
    )


def convolution(
    name: str,
    x: Tensor,
    weights: NDArray[Any],
    bias: NDArray[Any] | None,
    activation: int = NONE,
    *,
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    padding: str = "SAME",
    depthwise: bool = False,
) -> Op:
    """A CONV_2D of weights `[outputs, height, width, inputs]`, or a DEPTHWISE_CONV_2D of `[1, height, width, outputs]`."""
    options = schema.DepthwiseConv2DOptionsT() if depthwise else schema.Conv2DOptionsT()
    options.padding, options.fusedActivationFunction = getattr(schema.Padding, padding), activation
    (options.strideH, options.strideW), (options.dilationHFactor, options.dilationWFactor) = stride, dilation
    if depthwise:
        options.depthMultiplier = weights.shape[3] // (x.shape[3] or 1)
    size = [
        -(-n // s) if padding == "SAME" else -(-(n - (k - 1) * d) // s)
        for n, k, s, d in zip((x.shape[1] or 1, x.shape[2] or 1), weights.shape[1:3], stride, dilation, strict=True)
    ]
    y = Tensor(name, "float32", (None, *size, weights.shape[3 if depthwise else 0]))
    kind = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    return Op(kind, (x, _constant(f"{name}/w", weights), _bias(name, bias)), (y,), options)


def model(x: Tensor, *ops: Op) -> bytes:
    """The flatbuffer of operators in a row; its output is that of the last."""
    return pack([Graph("serving_default", (x,), ops[-1].outputs, ops)])


def uneven_dense(activation: int = RELU) -> bytes:
    """Two dense layers whose hidden channels differ by a factor of 1000 in range: one scale a tensor rounds most to zero."""
    generator = np.random.default_rng(1)
    factors = np.logspace(-1.5, 1.5, 16)
    x = Tensor("x", "float32", (None, 8))
    first = dense("a", x, generator.normal(size=(16, 8)) * factors[:, None], generator.normal(size=16) * factors, activation)
    return model(x, first, dense("b", first.outputs[0], generator.normal(size=(4, 16)) / factors, np.zeros(4)))


def uneven_depthwise() -> bytes:
    """A separable convolution as in MobileNet: 1x1, depthwise, 1x1, with channels of very different range."""
    generator = np.random.default_rng(2)
    factors, others = np.logspace(-1, 1, 8), np.logspace(1, -1, 8)
    x = Tensor("x", "float32", (None, 6, 6, 4))
    a = convolution("a", x, generator.normal(size=(8, 1, 1, 4)) * factors[:, None, None, None], generator.normal(size=8) * factors, RELU)
    b = convolution("b", a.outputs[0], generator.normal(size=(1, 3, 3, 8)) * others**2, generator.normal(size=8), RELU, depthwise=True)
    return model(x, a, b, convolution("c", b.outputs[0], generator.normal(size=(4, 1, 1, 8)) * factors, generator.normal(size=4)))


def outlier_dense() -> bytes:
    """A dense layer in which one weight of 12 makes the steps of one scale a tensor as large as a tenth of the others' spread."""
    generator = np.random.default_rng(3)
    x = Tensor("x", "float32", (None, 24))
    weights = generator.uniform(-0.2, 0.2, size=(10, 24))
    weights[0, 0] = 12
    return model(x, dense("a", x, weights, generator.normal(size=10), RELU))


def _dense_output(name: str, x: Tensor, weights: NDArray[Any]) -> Tensor:
    return Tensor(name, "float32", (*x.shape[:-1], weights.shape[0]))


def _fused(activation: int) -> Any:
    options = schema.FullyConnectedOptionsT()
    options.fusedActivationFunction = activation
    return options


def _bias(name: str, bias: NDArray[Any] | None) -> Tensor | None:
    return None if bias is None else _constant(f"{name}/b", bias)


def _constant(name: str, value: NDArray[Any]) -> Tensor:
    return Tensor(name, "float32", value.shape, value=value.astype(np.float32))
