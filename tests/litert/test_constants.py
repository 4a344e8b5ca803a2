"""Constants: read, replaced and compared, and nothing else changes."""

from typing import Any

import numpy as np
import pytest
from correctable_models import dense, model, uneven_dense
from numpy.typing import NDArray
from tiny_flatbuffers import Tensor

from tfx_edge.litert import inspect
from tfx_edge.litert.constants import changed_constants, constants, replace_constants
from tfx_edge.litert.packing import pack
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError

X = Tensor("x", "float32", (None, 3))
WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def two_layers_of_one_buffer() -> bytes:
    first = dense("a", X, np.eye(3), None)
    parsed = inspect.parse(model(X, first, dense("b", first.outputs[0], np.eye(3), None)))
    one, other = [t for t in parsed.subgraphs[0].tensors if t.name.endswith(b"/w_tensor")]
    other.buffer = one.buffer
    return pack(parsed)


def predicted(flatbuffer: bytes, x: NDArray[Any]) -> NDArray[Any]:
    [y] = Runner(flatbuffer)({"x": x}).values()
    return y


def test_a_constant_is_read_and_replaced() -> None:
    float_model = model(X, dense("a", X, WEIGHTS, None))
    [(index, value)] = constants(float_model).items()
    np.testing.assert_array_equal(value, WEIGHTS)
    doubled = replace_constants(float_model, {index: value * 2})
    np.testing.assert_array_equal(constants(doubled)[index], WEIGHTS * 2)
    np.testing.assert_array_equal(predicted(doubled, np.eye(3, dtype=np.float32)), 2 * WEIGHTS.T)
    assert changed_constants(float_model, doubled).keys() == {index}
    assert replace_constants(float_model, {}) == float_model
    assert replace_constants(doubled, {index: value}) == replace_constants(float_model, {index: value})


def test_a_constant_that_shares_its_bytes_changes_alone() -> None:
    float_model = two_layers_of_one_buffer()
    first, second = constants(float_model)
    changed = replace_constants(float_model, {second: 3 * np.eye(3, dtype=np.float32)})
    np.testing.assert_array_equal(constants(changed)[first], np.eye(3))
    np.testing.assert_array_equal(predicted(changed, np.eye(3, dtype=np.float32)), 3 * np.eye(3))
    both = replace_constants(float_model, {i: np.float32(k) * np.eye(3, dtype=np.float32) for i, k in ((first, 2), (second, 5))})
    np.testing.assert_array_equal(predicted(both, np.eye(3, dtype=np.float32)), 10 * np.eye(3))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (WEIGHTS[:, :2], "is float32 of shape .2, 3., the new value float32 of shape .2, 2."),
        (WEIGHTS.astype(np.float64), "the new value float64"),
    ],
)
def test_a_value_of_another_shape_or_type_is_refused(value: NDArray[Any], message: str) -> None:
    float_model = model(X, dense("a", X, WEIGHTS, None))
    with pytest.raises(EdgeError, match=message):
        replace_constants(float_model, dict.fromkeys(constants(float_model), value))


def test_an_activation_and_another_model_are_refused() -> None:
    float_model = model(X, dense("a", X, WEIGHTS, None))
    with pytest.raises(EdgeError, match="tensor 0 of the flatbuffer is no constant"):
        replace_constants(float_model, {0: WEIGHTS})
    with pytest.raises(EdgeError, match="different constants"):
        changed_constants(float_model, uneven_dense())


def test_what_differs_in_a_bit_alone_has_changed() -> None:
    float_model = model(X, dense("a", X, np.zeros((2, 3)), None))
    [index] = constants(float_model)
    assert changed_constants(float_model, replace_constants(float_model, {index: -np.zeros((2, 3), np.float32)})).keys() == {index}
