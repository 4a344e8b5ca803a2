"""Zeros that an operator reads beside an LSTM, which the converter makes one with the LSTM's state."""

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from recurrent_flatbuffers import lstm
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import inspect
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.states import separate_states

STEPS, UNITS = 3, 2
RNG = np.random.default_rng(4)
SERIES = {"series": RNG.normal(size=(5, STEPS, 1)).astype(np.float32)}


def shared() -> bytes:
    """An LSTM, and `start`: the sum of one of its states, meant as zeros, and the constant 1."""

    def weights(name: str, *shape: int) -> Tensor:
        return Tensor(name, "float32", shape, value=RNG.normal(size=shape))

    x, sequence = Tensor("series", "float32", (1, STEPS, 1)), Tensor("sequence", "float32", (1, STEPS, UNITS))
    hidden, cell = (Tensor(name, "float32", (1, UNITS), variable=True) for name in ("hidden", "cell"))
    kernels = (*(weights(f"input_{gate}", UNITS, 1) for gate in "ifco"), *(weights(f"recurrent_{gate}", UNITS, UNITS) for gate in "ifco"))
    biases = tuple(weights(f"bias_{gate}", UNITS) for gate in "ifco")
    options = schema.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    inputs = (x, *kernels, *(None,) * 3, *biases, *(None,) * 2, hidden, cell, *(None,) * 4)
    one, start = Tensor("one", "float32", (1, UNITS), value=np.ones((1, UNITS))), Tensor("start", "float32", (1, UNITS))
    ops = (
        Op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (sequence,), options),
        Op("ADD", (hidden, one), (start,), schema.AddOptionsT()),
    )
    return pack([Graph("serving_default", (x,), (sequence, start), ops)])


def test_an_operator_beside_an_lstm_reads_zeros_and_not_the_lstms_state() -> None:
    model = shared()
    assert np.abs(Runner(model)(SERIES)["start"] - 1).max() > 0.01  # the fault
    mended = separate_states(model)
    outputs = Runner(mended)(SERIES)
    assert (outputs["start"] == 1).all()
    assert (outputs["sequence"] == Runner(model)(SERIES)["sequence"]).all()
    assert [t.isVariable for t in inspect.parse(mended).subgraphs[0].tensors].count(True) == 2


def test_a_model_that_shares_no_state_stays_as_it_is_and_a_mended_one_too() -> None:
    model, mended = lstm(), separate_states(shared())
    assert separate_states(model) is model
    assert separate_states(mended) is mended
