"""The layers that real models are made of, from Keras to a flatbuffer in every scheme.

What each scheme costs is the table in docs/schemes.md, which is held against what is measured here; `pytest -s` prints it anew.
"""

from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import tf_keras
from layer_zoo import BUILDERS, Zoo, convolutions, sequences, volumes, zoo
from tf_keras import layers

from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.litert.candidates import Candidates
from tfx_edge.litert.collector import Collector
from tfx_edge.litert.operator_report import operator_report, unfused_blocks
from tfx_edge.litert.planning import carry_out, plan_quantization
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.optimize.macs import count_macs
from tfx_edge.optimize.preparation import prepare
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.optimize.source_layers import source_layers
from tfx_edge.schemas import EdgeError, FineTuningConfig, QatConfig, QuantizationConfig
from tfx_edge.schemas.schemes import Scheme

SCHEMES = get_args(Scheme)
TABLE = Path(__file__).parents[2] / "docs" / "schemes.md"


@cache
def candidates(build) -> Candidates:
    animals = zoo(build)
    return Candidates(animals.flatbuffer, lambda model: Collector(model)(animals.features), lambda: animals.features)


@cache
def flatbuffer(build, scheme: Scheme) -> bytes:
    planned, _ = plan_quantization(candidates(build), QuantizationConfig(scheme=scheme), "digest")
    return carry_out(zoo(build).flatbuffer, planned)


def errors(build, scheme: Scheme) -> dict[str, float]:
    """Mean error by branch, in percent of the output's standard deviation."""
    animals = zoo(build)
    outputs = Runner(flatbuffer(build, scheme))(animals.features)
    difference = {name: np.abs(outputs[name] - expected).mean() / expected.std() for name, expected in animals.expected.items()}
    return {branch: 100 * float(difference[name]) for branch, name in animals.branches.items()}


def documented() -> dict[str, dict[str, float]]:
    """The table of docs/schemes.md: percent by layer and scheme."""
    rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    [header, *body] = rows[next(i for i, row in enumerate(rows) if row[0] == "layers") :]
    table = {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in body if len(row) == len(header) and row[0].strip("-")}
    return {layer: {scheme: float(cell) for scheme, cell in cells.items()} for layer, cells in table.items()}


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_keras_and_flatbuffer_agree_as_well_as_documented(build, scheme: Scheme) -> None:
    table = documented()
    for branch, error in errors(build, scheme).items():
        if scheme == "float32":
            assert error < 1e-3, branch
            assert table[branch][scheme] == 0
        else:
            assert error == pytest.approx(table[branch][scheme], rel=0.25, abs=0.02), branch


def test_the_table_names_each_branch_and_scheme() -> None:
    branches = [branch for build in BUILDERS for branch in zoo(build).branches]
    lines = [f"| layers | {' | '.join(SCHEMES)} |", f"| --- |{' --- |' * len(SCHEMES)}"]
    measured = {scheme: {k: v for build in BUILDERS for k, v in errors(build, scheme).items()} for scheme in SCHEMES}
    lines += [f"| {branch} | {' | '.join(_rounded(measured[scheme][branch]) for scheme in SCHEMES)} |" for branch in branches]
    print("\n" + "\n".join(lines))  # noqa: T201
    table = documented()
    assert list(table) == branches
    assert all(tuple(row) == SCHEMES for row in table.values())


def _rounded(percent: float) -> str:
    return "0" if percent < 0.005 else f"{percent:.2f}" if percent < 1 else f"{percent:.1f}"


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_each_operator_and_each_layer_is_accounted_for(build) -> None:
    animals = zoo(build)
    for scheme in ("float32", "float16", "dynamic_range", "int8"):
        report = operator_report(flatbuffer(build, scheme), source_layers(animals.keras_model))
        assert [op.kind for op in report.operators if not op.layers and op.computes_in != "conversion"] == []
        assert [layer.name for layer in report.layers if not layer.operators and layer.reason is None] == []
        assert [layer.kind for layer in report.layers if layer.kind == "BatchNormalization" and not layer.operators] == []


@pytest.mark.parametrize("scheme", ["float32", "int8"])
def test_multiplications_of_operators_add_up_to_those_of_their_keras_layers(scheme: Scheme) -> None:
    for build in BUILDERS:
        animals = zoo(build)
        report = operator_report(flatbuffer(build, scheme), source_layers(animals.keras_model))
        counted = dict.fromkeys(count_macs(animals.keras_model), 0)
        for op in report.operators:
            if op.layers:
                counted[op.layers[0]] += op.macs or 0
        expected = count_macs(animals.keras_model)
        if build is sequences:  # Keras' side counts no products of activations
            batch, heads, steps, width, key = 1, 2, 8, 4, 4
            projections = 4 * batch * steps * width * heads * key
            expected["attention"] = projections + 2 * batch * heads * steps * steps * key
            expected["dot"] = steps * steps * 4
            expected["gru"] -= 5 * 15  # the first step's state is zeros: the converter leaves its product out
            expected["rnn"] -= 5 * 5
        if build is convolutions:  # it is called three times, twice on the same input: the converter keeps one of these
            expected["shared"] = expected["shared"] * 2 // 3
        assert counted == expected
        assert report.totals.uncounted == {}


@pytest.mark.parametrize("scheme", ["float32", "int8"])
def test_convolution_normalization_and_relu_are_one_operator_and_one_that_is_read_twice_is_not(scheme: Scheme) -> None:
    report = operator_report(flatbuffer(convolutions, scheme), source_layers(zoo(convolutions).keras_model))
    for kind, block in (("CONV_2D", "conv"), ("DEPTHWISE_CONV_2D", "depthwise")):
        [op] = [op for op in report.operators if block in op.layers]
        assert (op.kind, op.layers) == (kind, (block, f"{block}_norm", f"{block}_relu"))
    [dense] = [op for op in report.operators if "dense_norm" in op.layers]
    assert dense.kind == "FULLY_CONNECTED"
    [left] = unfused_blocks(report)
    assert (left.layer, left.unfused) == ("read_twice", ("read_twice_norm",))
    assert "'read_twice' is read by " in left.reason and "both" in left.reason


def test_three_dimensional_convolutions_say_that_the_converter_folds_nothing_into_them() -> None:
    report = operator_report(zoo(volumes).flatbuffer, source_layers(zoo(volumes).keras_model))
    [block] = unfused_blocks(report)
    assert block.unfused == ("conv_norm", "conv_relu") and "CONV_3D" in block.reason


def test_a_block_is_one_operator_after_quantization_aware_training() -> None:
    image = layers.Input((6, 6, 1), name="image")
    hidden = layers.BatchNormalization(name="norm")(layers.Conv2D(3, 3, use_bias=False, name="conv")(image))
    hidden = layers.Flatten(name="flat")(layers.ReLU(name="relu")(hidden))
    model = tf_keras.Model(image, layers.Dense(2, name="head")(hidden))
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices(({"image": np.random.default_rng(0).random((32, 6, 6, 1), np.float32)}, np.arange(32) % 2))
    config = QatConfig(fine_tuning=FineTuningConfig(label_key="y", epochs=1, batch_size=16))
    trained, _ = train_quantized(model, data, config)
    report = operator_report(convert_model(from_keras_model(trained), "trained", quantized_io="int8"), source_layers(trained))
    [conv] = [op for op in report.operators if "conv" in op.layers]
    assert (conv.layers, conv.activation, conv.computes_in) == (("conv", "norm", "relu"), "RELU", "int8")
    assert [(layer.name, layer.fused_into) for layer in report.layers if layer.fused_into] == [("norm", "conv"), ("relu", "conv")]
    assert unfused_blocks(report) == ()


def test_a_loop_that_takes_no_ranges_is_refused_with_what_to_do_and_computes_in_float() -> None:
    series = layers.Input((40, 3), name="series")  # longer than what edge preparation unrolls
    prepared, report = prepare(tf_keras.Model(series, layers.GRU(3, name="gru")(series)))
    assert [left.layer for left in report.left] == ["gru"]
    float_model = from_keras_model(prepared)
    model = convert_model(float_model, "the model")
    features = {"series": np.random.default_rng(0).normal(size=(8, 40, 3)).astype(np.float32)}
    make = Candidates(model, lambda m: Collector(m)(features))
    with pytest.raises(EdgeError, match="control flow") as refused:
        plan_quantization(make, QuantizationConfig(scheme="int8"), "digest")
    assert "\n" not in str(refused.value)
    planned, _ = plan_quantization(make, QuantizationConfig(scheme="dynamic_range"))
    [expected] = float_model.predict(features).values()
    for each, bound in ((model, 1e-5), (carry_out(model, planned), 0.05)):
        [got] = Runner(each)(features).values()
        assert np.abs(got - expected).mean() < bound * expected.std()
    assert "WHILE" in operator_report(model, source_layers(prepared)).totals.uncounted


def test_layers_of_nested_and_shared_models_are_told_once_with_all_that_they_read() -> None:
    image = layers.Input((4,), name="x")
    shared = layers.Dense(4, name="shared")
    nested = tf_keras.Sequential([layers.Dense(3, name="shared", input_shape=(4,)), layers.ReLU(6.0, name="cap")], name="nested")
    first = shared(image)
    model = tf_keras.Model(image, [nested(shared(first)), layers.Add(name="sum")([first, image])])
    found = {layer.name: layer for layer in source_layers(model)}
    assert {name: layer.inputs for name, layer in found.items()} == {
        "shared": ("shared",),
        "nested_shared": ("shared",),
        "cap": ("nested_shared",),
        "sum": ("shared",),
    }
    assert (found["cap"].activation, found["cap"].outputs, found["sum"].outputs) == ("relu6", ("nested",), ("sum",))


def test_a_gru_beside_an_lstm_starts_from_zeros_of_its_own() -> None:
    animals: Zoo = zoo(sequences)
    outputs = Runner(animals.flatbuffer)(animals.features)
    name = animals.branches["GRU"]
    assert np.abs(outputs[name] - animals.expected[name]).max() < 1e-5
