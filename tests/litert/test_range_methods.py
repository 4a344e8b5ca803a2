"""Ranges from statistics, against the raw values that the statistics were taken of."""

import numpy as np
import pytest

from tfx_edge.litert.activation_statistics import Statistics, TensorStatistics, bin_counts, bin_edges, from_bytes, merge, to_bytes
from tfx_edge.litert.range_methods import tensor_ranges
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.ranges import RangeConfig, RangeRule

RANDOM = np.random.default_rng(0)
DATA = {
    "normal": RANDOM.normal(size=20_000),
    "relu": np.maximum(RANDOM.normal(size=20_000), 0),
    "heavy": RANDOM.standard_t(2, size=20_000),
    "shifted": RANDOM.normal(size=20_000) + 50,
    "negative": -RANDOM.exponential(size=20_000),
    "outlier": np.append(RANDOM.normal(size=20_000), 1000.0),
}


def statistics(values):
    values = np.float32(values)
    counts = bin_counts(values)
    bins = np.flatnonzero(counts)
    return Statistics({"t": TensorStatistics(float(values.min()), float(values.max()), bins.astype(np.uint16), counts[bins])}, len(values))


def taken(values, num_bits=8, **config):
    found = tensor_ranges([statistics(values)], RangeConfig(**config), num_bits).ranges["t"]
    return found.min, found.max


def quantized(values, low, high):
    low, high = min(low, 0), max(high, 0)
    step = (high - low) / 255
    return np.clip(np.round(values / step), round(low / step), round(high / step)) * step


def error(values, low, high):
    return np.mean((quantized(values, low, high) - values) ** 2)


@pytest.mark.parametrize("name", DATA)
def test_a_histogram_holds_every_value_in_the_bin_that_spans_it(name):
    values = np.float32(DATA[name])
    counts = bin_counts(values)
    low, high = bin_edges(np.flatnonzero(counts).astype(np.uint16))
    assert counts.sum() == len(values) and (np.diff(np.sort(low)) > 0).all()
    inside = sum(((values >= a) & (values <= b)).sum() for a, b in zip(low, high, strict=True))
    assert inside == len(values)
    nonzero = np.abs(low) > 1e-30
    assert ((high - low)[nonzero] <= np.minimum(np.abs(low), np.abs(high))[nonzero] / 31).all()


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("percentile", [99.9, 99, 90])
def test_a_percentile_is_numpys_to_the_width_of_a_bin(name, percentile):
    values = np.float32(DATA[name])
    low, high = taken(values, method="percentile", percentile=percentile)
    lower, upper = (
        np.percentile(values, [100 - percentile, percentile], method="lower"),
        np.percentile(values, [100 - percentile, percentile], method="higher"),
    )
    for found, least, most in zip((low, high), lower, upper, strict=True):
        assert least - 0.032 * abs(least) <= found <= most + 0.032 * abs(most)


@pytest.mark.parametrize("name", DATA)
def test_the_range_of_least_squared_error_is_as_good_as_the_best_that_brute_force_finds(name):
    values = DATA[name]
    low, high = min(values.min(), 0), max(values.max(), 0)
    shares = np.linspace(1, 1 / 64, 64)
    brute = min(error(values, low * a, high * b) for a in (shares if low else [1]) for b in (shares[::2] if high else [1]))
    assert error(values, *taken(values, method="mse")) <= 1.05 * brute


def test_clipping_is_worth_it_where_few_values_are_far_out_and_not_where_values_are_uniform():
    far = np.append(RANDOM.normal(size=1_000_000), 12.0)
    assert error(far, *taken(far, method="mse")) < 0.7 * error(far, far.min(), far.max())
    uniform = RANDOM.uniform(-1, 1, 20_000)
    assert taken(uniform, method="mse") == pytest.approx((uniform.min(), uniform.max()), rel=0.02)


def test_entropy_cuts_an_outlier_off_and_leaves_a_uniform_distribution_whole():
    low, high = taken(DATA["outlier"], method="entropy")
    assert low < -2 and 2 < high < 8  # 128 levels of 1000 would leave a normal distribution in one
    uniform = RANDOM.uniform(-1, 1, 20_000)
    assert taken(uniform, method="entropy") == pytest.approx((uniform.min(), uniform.max()), rel=0.1)


def test_sixteen_bits_clip_less_than_eight():
    values = DATA["heavy"]
    assert taken(values, num_bits=16, method="mse")[1] > taken(values, num_bits=8, method="mse")[1]
    assert taken(values, num_bits=16, method="entropy") == (np.float32(values.min()), np.float32(values.max()))
    one_sided = taken(np.abs(values), num_bits=16, method="mse")
    assert one_sided[0] == np.float32(np.abs(values).min())  # what is below it is never taken


def test_a_moving_average_is_the_mean_of_the_extremes_of_parts_and_no_range_of_scalars_collapses():
    rows = np.array_split(np.float32(DATA["normal"]), 8)
    found = tensor_ranges([statistics(row) for row in rows], RangeConfig(method="moving_average")).ranges["t"]
    wanted = np.mean([row.min() for row in rows], dtype=np.float64), np.mean([row.max() for row in rows], dtype=np.float64)
    np.testing.assert_allclose((found.min, found.max), wanted, rtol=1e-12)
    assert found.max - found.min > 6  # of a standard normal distribution


@pytest.mark.parametrize("method", ["min_max", "moving_average", "percentile", "mse", "entropy"])
@pytest.mark.parametrize("name", DATA)
def test_every_range_lies_within_the_true_one(method, name):
    low, high = taken(DATA[name], method=method)
    assert np.float32(DATA[name].min()) <= low <= high <= np.float32(DATA[name].max())


@pytest.mark.parametrize("method", ["min_max", "moving_average", "percentile", "mse", "entropy"])
@pytest.mark.parametrize("value", [0.0, 3.0, -2.0])
def test_a_constant_has_a_range_of_its_own(method, value):
    low, high = taken(np.full(200, value), method=method)
    assert low == pytest.approx(value) and high == pytest.approx(value)


def test_merging_parts_in_any_grouping_and_order_gives_the_whole_to_the_bit():
    values = np.float32(DATA["heavy"])
    whole = statistics(values)
    rows = np.array_split(values, 100)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(100)
        groups = np.array_split(order, 7)
        parts = [merge(statistics(rows[i]) for i in group) for group in groups]
        merged = merge([merge(parts[:3]), merge(parts[3:])])
        assert merged == whole
        assert from_bytes(to_bytes([merged, whole])) == (whole, whole)


def test_a_rule_gives_a_tensor_a_method_of_its_own_and_the_last_one_wins():
    both = [Statistics({"a": statistics(DATA["heavy"]).tensors["t"], "b": statistics(DATA["heavy"]).tensors["t"]}, 100)]
    rules = (RangeRule(tensor="b", method="mse"), RangeRule(tensor="^b$", method="percentile", percentile=90))
    found = tensor_ranges(both, RangeConfig(rules=rules[1:])).ranges
    assert found["a"].max == float(np.float32(DATA["heavy"].max())) and found["b"].max < 3
    with pytest.raises(EdgeError, match="rule for tensor 'b' decides on no activation"):
        tensor_ranges(both, RangeConfig(rules=rules))


def test_a_histogram_that_was_not_collected_is_named():
    bare = [Statistics({"t": TensorStatistics(0.0, 1.0)}, 1)]
    with pytest.raises(EdgeError, match="'mse' of tensor 't' needs a histogram"):
        tensor_ranges(bare, RangeConfig(method="mse"))
