import pytest

from tfx_edge.schemas import ConfigError
from tfx_edge.schemas.statistics import Interval, LayerError, LayerErrors, OutputDrift, PairedStatistics, SliceStatistics


def layer(tensor: str, loss_db: float) -> LayerError:
    return LayerError(op="CONV_2D", tensor=tensor, sqnr_db=20.0, mean_abs_error=0.1, worst_abs_error=0.2, loss_db=loss_db)


def test_an_interval_has_both_ends_or_none_and_goes_up() -> None:
    assert Interval(low=None, high=None, confidence=0.95, method="paired_t").low is None
    for low, high in ((None, 1.0), (0.0, None), (1.0, 0.0)):
        with pytest.raises(ConfigError):
            Interval(low=low, high=high, confidence=0.95, method="paired_t")


def test_the_layers_that_cost_most_come_first() -> None:
    errors = LayerErrors(layers=(layer("a", 1.0), layer("b", 30.0), layer("c", 2.0)), examples=1, skipped=0)
    assert [entry.tensor for entry in errors.worst] == ["b", "c", "a"]
    assert [entry.tensor for entry in errors.layers] == ["a", "b", "c"]


@pytest.mark.parametrize(("examples", "flips", "rate"), [(200, 3, 0.015), (200, 0, 0.0), (200, None, None), (0, 0, None)])
def test_the_flip_rate_is_a_share_of_the_examples(examples: int, flips: int | None, rate: float | None) -> None:
    drift = OutputDrift(
        output=None, examples=examples, flip_rule="argmax", flips=flips, mean_abs_error=0.0, worst_abs_error=0.0, sqnr_db=None
    )
    assert drift.flip_rate == rate


def test_slice_keys_keep_the_types_of_their_values() -> None:
    key = (("city", "7"), ("group", 7), ("age", 7.5))
    statistics = PairedStatistics(slices=(SliceStatistics(key=key, examples=3, weighted=3, means=(None,), drift=()),))
    back = PairedStatistics.from_json(statistics.to_json()).slices[0].key
    assert back == key and [type(value) for _, value in back] == [str, int, float]
