"""Statistics of activations, the same however the data is cut; and whether halves of the data agree."""

import numpy as np
import pytest

from tfx_edge.litert.activation_statistics import BINS, NOTHING, Statistics, TensorStatistics, bin_counts
from tfx_edge.litert.agreement import disagreement
from tfx_edge.litert.collector import Collector, merge_parts
from tfx_edge.schemas.ranges import RangeConfig

MSE = frozenset({"mse"})


@pytest.mark.parametrize("model", ["image_model", "scalar_model", "fixed_image_model"])
def test_statistics_do_not_depend_on_how_the_data_is_cut_ordered_and_typed(request, model, images, scalars):
    features = scalars if model == "scalar_model" else images
    collect = Collector(request.getfixturevalue(model), MSE)
    whole = collect(features)
    count = len(next(iter(features.values())))
    for step in (1, 7, 32):
        order = np.random.default_rng(step).permutation(count)
        cut = [{k: v[order[at : at + step]].astype(np.float64) for k, v in features.items()} for at in range(0, count, step)]
        assert merge_parts([collect(batch) for batch in cut]) == whole
        for batch in cut:
            collect.add(batch)
        assert collect.finish() == whole
    assert sum(part.examples for part in whole) == count and all(part.examples > count // 30 for part in whole)


def test_a_histogram_is_that_of_the_values_themselves(dense):
    [statistics] = Collector(dense.flatbuffer, MSE, parts=1)({"x": dense.x})
    x = next(t for t in statistics.tensors.values() if t.low == dense.x.min())
    counts = np.zeros(BINS, np.int64)
    counts[x.bins] = x.counts
    np.testing.assert_array_equal(counts, bin_counts(dense.x))


def test_only_what_a_method_needs_is_collected(dense):
    [statistics] = Collector(dense.flatbuffer, parts=1)({"x": dense.x})
    assert all(len(t.bins) == 0 for t in statistics.tensors.values())


def parts(draw, examples, seed=0):
    """Eight parts of data, one number an example."""
    values = np.float32(draw(np.random.default_rng(seed), (8, examples // 8)))
    return [Statistics({"t": TensorStatistics(float(row.min()), float(row.max()))}, len(row)) for row in values]


def test_halves_of_well_behaved_data_agree():
    assert disagreement(parts(lambda g, size: g.uniform(-1, 1, size), 400), RangeConfig()) is None
    assert disagreement(parts(lambda g, size: np.zeros(size), 400), RangeConfig()) is None


def test_the_number_of_examples_that_would_do_is_enough_and_not_far_too_many():
    def draw(generator, size):
        return generator.uniform(-1, 1, size)

    config = RangeConfig(agreement=0.02)
    needed = []
    for seed in range(20):
        said = disagreement(parts(draw, 40, seed), config)
        if said is not None:
            words = said.split("about ")
            needed.append(int(words[1].split()[0]) if len(words) > 1 else 100_000)
    estimate = int(np.median(needed))
    agreeing = [disagreement(parts(draw, estimate // 8 * 8, 100 + seed), config) is None for seed in range(20)]
    assert np.mean(agreeing) > 0.5 and estimate < 4000  # 1/n: a gap of 0.02 takes a few hundred


def test_extremes_that_never_settle_are_told_apart_from_too_few_examples():
    said = disagreement(parts(lambda g, size: g.standard_cauchy(size), 4000), RangeConfig(agreement=0.05))
    assert said is not None and "tensor 't'" in said and "percentile" in said and "\n" not in said


def test_data_that_does_not_fill_four_parts_cannot_tell():
    few = [*parts(lambda g, size: g.uniform(size=size), 80)[:3], *[NOTHING] * 5]
    assert "30 calibration examples can't tell" in str(disagreement(few, RangeConfig()))
