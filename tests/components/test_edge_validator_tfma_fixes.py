import copy
from typing import Any

import pytest
from apache_beam.internal import pickler
from tensorflow_model_analysis.metrics import cross_entropy_metrics, mean_regression_error, metric_types

from tfx_edge.components.edge_validator.tfma_fixes import _combiners, fix_combiners


def combiner(metric: metric_types.Metric) -> Any:
    (computation,) = [c for c in metric.computations(model_names=["m"]) if isinstance(c, metric_types.MetricComputation)]
    return computation.combiner


@pytest.mark.parametrize("metric", [mean_regression_error.MeanSquaredError(), cross_entropy_metrics.BinaryCrossEntropy()])
def test_merging_counts_each_part_once_after_pickling_too(metric: metric_types.Metric) -> None:
    for mended in (combiner(metric), pickler.loads(pickler.dumps(combiner(metric)))):
        part = mended.create_accumulator()
        assert vars(part)
        for name in vars(part):
            setattr(part, name, 3.0)
        merged = mended.merge_accumulators([copy.copy(part), copy.copy(part)])
        assert set(vars(merged).values()) == {6.0}


def test_every_combiner_that_counts_twice_is_found_and_a_second_call_changes_nothing() -> None:
    found = list(_combiners())
    assert len(found) >= 5
    before = [c.merge_accumulators for c in found]
    fix_combiners()
    assert [c.merge_accumulators for c in found] == before
