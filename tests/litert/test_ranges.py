"""Activation ranges: true extremes, whatever way the data came."""

import random
from typing import Any

import numpy as np
import pytest

from tfx_edge.litert.ranges import EMPTY, RangeCollector, merge
from tfx_edge.schemas import EdgeError, TensorRange, TensorRanges


def test_ranges_are_the_extremes_that_numpy_finds(dense: Any) -> None:
    ranges = RangeCollector(dense.flatbuffer)({"x": dense.x})
    assert ranges.examples == 200
    found = sorted((r.min, r.max) for r in ranges.ranges.values())
    y = dense(dense.x)
    expected = sorted([(dense.x.min(), dense.x.max()), (y.min(), y.max())])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("step", [1, 7, 32])
@pytest.mark.parametrize("model", ["image_model", "scalar_model", "fixed_image_model"])
def test_ranges_do_not_depend_on_how_the_data_is_cut_and_ordered(
    request: pytest.FixtureRequest, model: str, step: int, images: dict[str, Any], scalars: dict[str, Any]
) -> None:
    features = scalars if model == "scalar_model" else images
    collect = RangeCollector(request.getfixturevalue(model))
    whole = collect(features)
    count = len(next(iter(features.values())))
    order = np.random.default_rng(step).permutation(count)
    parts = [collect({k: v[order[at : at + step]] for k, v in features.items()}) for at in range(0, count, step)]
    random.Random(step).shuffle(parts)
    assert merge(parts) == whole
    assert whole.examples == count


def _some_ranges(generator: random.Random) -> TensorRanges:
    names = generator.sample("abcdef", generator.randint(0, 6))
    pairs = {name: sorted([generator.gauss(0, 9), generator.gauss(0, 9)]) for name in names}
    return TensorRanges(ranges={n: TensorRange(min=a, max=b) for n, (a, b) in pairs.items()}, examples=generator.randint(0, 9))


def test_merging_is_associative_and_commutative_with_a_neutral_element() -> None:
    generator = random.Random(0)
    for _ in range(100):
        a, b, c = (_some_ranges(generator) for _ in range(3))
        assert merge([merge([a, b]), c]) == merge([a, merge([b, c])]) == merge([a, b, c])
        assert merge([a, b]) == merge([b, a])
        assert merge([a, EMPTY]) == merge([a])
    assert merge([]) == EMPTY


def test_a_merged_range_spans_its_parts() -> None:
    parts = [TensorRanges(ranges={"t": TensorRange(min=low, max=high)}, examples=1) for low, high in [(0, 1), (-3, 0.5), (0.2, 7)]]
    assert merge(parts) == TensorRanges(ranges={"t": TensorRange(min=-3, max=7)}, examples=3)


@pytest.mark.parametrize(("bad", "said"), [(np.nan, "NaN"), (np.inf, "Inf"), (-np.inf, "Inf")])
def test_a_feature_that_is_not_finite_is_named(scalar_model: bytes, scalars: dict[str, Any], bad: float, said: str) -> None:
    mass = scalars["mass"].copy()
    mass[17] = bad
    with pytest.raises(EdgeError, match=rf"tensor '\w*mass\S*' took {said} on the calibration data"):
        RangeCollector(scalar_model)({**scalars, "mass": mass})


def test_an_activation_that_is_not_finite_is_named(models: Any) -> None:
    import tensorflow as tf

    path = models.save("log", lambda x: {"y": tf.math.log(x) + 1.0}, {"x": ([None, 2], "float32")})
    with pytest.raises(EdgeError, match="tensor '.*Log.*' took NaN"):
        RangeCollector(models.flatbuffer(path))({"x": np.float32([[1, 2], [-1, 1]])})


def test_the_collector_goes_on_after_an_error(scalar_model: bytes, scalars: dict[str, Any]) -> None:
    collect = RangeCollector(scalar_model)
    expected = collect(scalars)
    with pytest.raises(EdgeError):
        collect({**scalars, "mass": np.full(300, np.nan, np.float32)})
    assert collect(scalars) == expected
