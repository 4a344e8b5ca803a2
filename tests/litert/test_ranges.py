"""Activation ranges: true extremes."""

from typing import Any

import numpy as np
import pytest

from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.schemas import EdgeError


def test_ranges_are_the_extremes_that_numpy_finds(dense: Any) -> None:
    ranges = RangeCollector(dense.flatbuffer)({"x": dense.x})
    assert ranges.examples == 200
    found = sorted((r.min, r.max) for r in ranges.ranges.values())
    y = dense(dense.x)
    expected = sorted([(dense.x.min(), dense.x.max()), (y.min(), y.max())])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


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
