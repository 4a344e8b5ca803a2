"""Fitting features to a model's inputs: values stay as they are, shapes follow the model, what can't fit is refused by name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tfx_edge.schemas import EdgeError, Signature, TensorSpec

SIZES = st.lists(st.integers(1, 4), max_size=3).map(tuple)


def spec(name: str, *each: int | None) -> TensorSpec:
    return TensorSpec(name=name, shape=(None, *each), dtype="float32")


@given(batch=st.integers(0, 3), each=SIZES, data=st.data())
def test_a_feature_takes_the_inputs_shape_and_keeps_its_values(batch: int, each: tuple[int, ...], data: st.DataObject) -> None:
    flat = data.draw(arrays.arrays(np.float32, (batch, int(np.prod(each))), elements=st.floats(-9, 9, width=32)))
    fitted = spec("x", *each).fit(flat)
    assert fitted.shape == (batch, *each)
    assert fitted.dtype == flat.dtype
    np.testing.assert_array_equal(fitted.reshape(flat.shape), flat)


@given(batch=st.integers(1, 3), have=SIZES, want=SIZES)
def test_another_number_of_values_an_example_is_refused(batch: int, have: tuple[int, ...], want: tuple[int, ...]) -> None:
    feature = np.zeros((batch, *have), np.float32)
    if np.prod(have) == np.prod(want):
        assert spec("x", *want).fit(feature).shape == (batch, *want)
    else:
        with pytest.raises(EdgeError, match="feature 'x': an example has shape") as caught:
            spec("x", *want).fit(feature)
        assert str(have) in str(caught.value)
        assert str(want) in str(caught.value)


def test_a_scalar_feature_feeds_an_input_of_one_value() -> None:
    assert spec("x", 1).fit(np.arange(3)).tolist() == [[0], [1], [2]]


def test_an_input_of_any_length_takes_a_feature_as_it_is() -> None:
    feature = np.zeros((2, 7))
    assert spec("text", None).fit(feature) is feature


def test_a_batch_may_hold_more_than_the_model_takes() -> None:
    signature = Signature(inputs=(spec("b", 1), spec("a", 2)), outputs=())
    fed = signature.feed({"a": np.zeros((3, 2)), "b": np.ones(3), "label": np.zeros(3)})
    assert list(fed) == ["b", "a"]
    assert fed["b"].shape == (3, 1)


def test_a_missing_feature_is_named_with_those_that_there_are() -> None:
    signature = Signature(inputs=(spec("a", 1), spec("b", 1), spec("c", 1)), outputs=())
    with pytest.raises(EdgeError, match=r"^the eval split: no feature 'a', 'c', .* there are 'b', 'label'; ") as caught:
        signature.feed({"label": np.zeros(1), "b": np.zeros(1)}, source="the eval split")
    assert len(str(caught.value).splitlines()) == 1


def test_names_come_in_the_models_order() -> None:
    signature = Signature(inputs=(spec("b"), spec("a")), outputs=(spec("z"), spec("y")))
    assert signature.input_names == ("b", "a")
    assert signature.output_names == ("z", "y")
