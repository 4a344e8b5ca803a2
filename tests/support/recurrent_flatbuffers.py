"""A recurrent layer as one operator, and as a loop, built tensor by tensor."""

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray
from tiny_flatbuffers import Graph, Op, Tensor, pack

STEPS, FEATURES, UNITS, CLASSES = 6, 3, 32, 4


def lstm() -> bytes:
    """series `[1, 6, 3]` to y `[1, 4]`: an LSTM of 32 units and a dense layer over its steps."""
    generator = np.random.default_rng(7)

    def weights(name: str, *shape: int) -> Tensor:
        return Tensor(name, "float32", shape, value=generator.normal(scale=0.4, size=shape))

    x = Tensor("series", "float32", (1, STEPS, FEATURES))
    states = tuple(Tensor(name, "float32", (1, UNITS), variable=True) for name in ("hidden", "cell"))
    inputs = (
        x,
        *(weights(f"input_to_{gate}", UNITS, FEATURES) for gate in "ifco"),
        *(weights(f"recurrent_to_{gate}", UNITS, UNITS) for gate in "ifco"),
        *(None,) * 3,
        *(weights(f"bias_{gate}", UNITS) for gate in "ifco"),
        *(None,) * 2,
        *states,
        *(None,) * 4,
    )
    options = schema.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    sequence, y = Tensor("sequence", "float32", (1, STEPS, UNITS)), Tensor("y", "float32", (1, CLASSES))
    flat = Tensor("flat", "float32", (1, STEPS * UNITS))
    shape = Tensor("shape", "int32", (2,), value=np.array([1, STEPS * UNITS]))
    ops = (
        Op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (sequence,), options),
        Op("RESHAPE", (sequence, shape), (flat,)),
        Op("FULLY_CONNECTED", (flat, weights("w", CLASSES, STEPS * UNITS), weights("b", CLASSES)), (y,), schema.FullyConnectedOptionsT()),
    )
    return pack([Graph("serving_default", (x,), (y,), ops)])


def loop(kernel: NDArray[np.float32], times: int) -> bytes:
    """x `[n, width]` to y: multiplied with the kernel `[width, width]` so many times, in a WHILE whose graphs share tensor names."""
    width = len(kernel)

    def index(name: str, value: int | None = None) -> Tensor:
        return Tensor(name, "int32", (1,), value=None if value is None else np.array([value]))

    def state(name: str) -> Tensor:
        return Tensor(name, "float32", (None, width))

    x, y = state("x"), state("y")
    options = schema.WhileOptionsT()
    options.condSubgraphIndex, options.bodySubgraphIndex = 1, 2
    main = Graph("serving_default", (x,), (y,), (Op("WHILE", (index("zero", 0), x), (index("end"), y), options),))
    i, h, go_on = index("i"), state("h"), Tensor("go_on", "bool", (1,))
    condition = Graph(None, (i, h), (go_on,), (Op("LESS", (i, index("times", times)), (go_on,)),))
    i, h, following, new = index("i"), state("h"), index("next"), state("new")
    w, b = Tensor("w", "float32", kernel.shape, value=kernel.T), Tensor("b", "float32", (width,), value=np.zeros(width))
    body = Graph(
        None,
        (i, h),
        (following, new),
        (
            Op("ADD", (i, index("one", 1)), (following,), schema.AddOptionsT()),
            Op("FULLY_CONNECTED", (h, w, b), (new,), schema.FullyConnectedOptionsT()),
        ),
    )
    return pack([main, condition, body])
