"""Corrections of trained models that plain int8 breaks; `hard_models` says what makes each hard."""

import numpy as np
import pytest
from hard_models import HardModel, depthwise_ranges, outlier_channel

from tfx_edge.litert.corrections import correct
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search.making import Maker
from tfx_edge.schemas import AdaRound, BiasCorrection, CrossLayerEqualization, QuantizationConfig
from tfx_edge.schemas.corrections import Correction
from tfx_edge.schemas.schemes import Granularity


def score(hard: HardModel, flatbuffer: bytes) -> float:
    [outputs] = Runner(flatbuffer)(hard.features).values()
    return hard.score(outputs, hard.truth)


def int8_score(hard: HardModel, *corrections: Correction, granularity: Granularity = "channel") -> float:
    config = QuantizationConfig(corrections=corrections, granularity=granularity)
    data = hard.calibration
    result = correct(hard.flatbuffer, config, lambda m: RangeCollector(m)(data), data, lambda m, ranges: Maker(m, ranges)(config))
    return score(hard, Maker(result.float_model, result.ranges)(config))


@pytest.fixture(scope="module")
def depthwise() -> HardModel:
    return depthwise_ranges()


@pytest.mark.parametrize("name", ["depthwise", "outlier"])
def test_equalization_gives_back_the_accuracy_that_plain_int8_loses(name: str, depthwise: HardModel) -> None:
    hard = depthwise if name == "depthwise" else outlier_channel()
    in_float = score(hard, hard.flatbuffer)
    assert int8_score(hard) < in_float - 0.2
    assert int8_score(hard, CrossLayerEqualization()) > in_float - 0.005


@pytest.mark.parametrize("correction", [AdaRound(iterations=300), BiasCorrection()], ids=lambda correction: str(correction.kind))
def test_the_other_corrections_give_back_almost_half_of_it(correction: Correction, depthwise: HardModel) -> None:
    lost = score(depthwise, depthwise.flatbuffer) - int8_score(depthwise, granularity="tensor")
    assert int8_score(depthwise, correction, granularity="tensor") > score(depthwise, depthwise.flatbuffer) - 0.55 * lost


def test_all_of_them_together_lose_nothing(depthwise: HardModel) -> None:
    together = int8_score(depthwise, CrossLayerEqualization(), AdaRound(iterations=300), BiasCorrection())
    np.testing.assert_allclose(together, score(depthwise, depthwise.flatbuffer), atol=0.005)
