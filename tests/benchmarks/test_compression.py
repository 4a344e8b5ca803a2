"""What the compression benchmark counts in flatbuffers, and what it makes of seeds."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
from benchmarks import compression


@pytest.fixture(scope="module")
def model():
    model = compression.build_model()
    for name in compression.LAYERS:
        kernel, bias = model.get_layer(name).get_weights()
        model.get_layer(name).set_weights([np.where(np.arange(kernel.size).reshape(kernel.shape) % 10 < 5, 0.0, 0.25), bias])
    return model


def test_kernels_are_those_of_the_layers_of_their_names(model):
    kernel, bias = model.get_layer("conv_2").get_weights()
    kernel[0, 0, 0, :7] = 0.5
    model.get_layer("conv_2").set_weights([kernel, bias])
    found = compression._kernels(compression._flatbuffer(model))
    for name in compression.LAYERS:
        expected = model.get_layer(name).get_weights()[0]
        assert sorted(found[name]) == sorted(expected.ravel()), name


def kernels(**other):
    zeros_and_values = np.concatenate([np.zeros(90), np.arange(1, 11)])
    return dict.fromkeys(compression.LAYERS, zeros_and_values) | other


def test_one_zero_too_few_in_one_layer_is_refused():
    compression._check_zeros(kernels(), dict.fromkeys(compression.LAYERS, 0.9))
    with pytest.raises(AssertionError, match="hidden"):
        compression._check_zeros(kernels(hidden=np.concatenate([np.zeros(89), np.ones(11)])), dict.fromkeys(compression.LAYERS, 0.9))


def test_one_value_too_many_in_one_layer_is_refused():
    compression._check_values(kernels(digit=np.arange(compression.CLUSTERS)))
    with pytest.raises(AssertionError, match="digit"):
        compression._check_values(kernels(digit=np.arange(compression.CLUSTERS + 1)))


@pytest.mark.parametrize(("better", "worst"), [("higher", 1.0), ("lower", 4.0)])
def test_the_worst_seed_must_reach_the_goal_too(better, worst):
    mean, last = compression._mean_and_worst("name", [1.0, 4.0, 4.0], "x", 2.5, better)
    assert (mean.name, mean.value, mean.spread, mean.runs) == ("name", 3.0, (1.0, 4.0), 3)
    assert (last.name, last.value, last.reached) == ("name.worst", worst, False)
