"""The component on artifacts built by hand, from a saved model and Examples in to a factorized model out."""

from pathlib import Path

import numpy as np
import pytest
import tf_keras
from example_shards import example, examples_artifact, schema, schema_artifact
from tfx.types import standard_artifacts

from tfx_edge.components import keys
from tfx_edge.components.low_rank_factorizer.executor import Executor
from tfx_edge.schemas import EdgeError, EnergyRank, FineTuningConfig, LowRankConfig, LowRankReport

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(64, 12)).astype("f4")
CONFIG = LowRankConfig(rank=EnergyRank(energy=0.6), fine_tuning=FineTuningConfig(label_key="label", epochs=1, batch_size=16))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("low_rank")
    x = tf_keras.Input((12,), name="x")
    hidden = tf_keras.layers.Dense(40, "relu", name="hidden")(tf_keras.layers.Rescaling(2.0, name="scaled")(x))
    model = tf_keras.Model(x, tf_keras.layers.Dense(3, "softmax", name="head")(hidden))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    artifact = standard_artifacts.Model()
    artifact.uri = str(folder / "model")
    model.save(f"{artifact.uri}/Format-Serving", save_format="tf")
    rows = [example({"x": row.tolist(), "label": [i % 3]}) for i, row in enumerate(VALUES)]
    return {
        keys.FLOAT_MODEL: [artifact],
        keys.EXAMPLES: [examples_artifact(folder / "examples", {"train": [rows]})],
        keys.SCHEMA: [schema_artifact(folder / "schema", schema(x=("FLOAT", 12), label=("INT",)))],
    }


def run(folder, inputs, config):
    output = standard_artifacts.Model()
    output.uri = str(folder / "output")
    Path(output.uri).mkdir()
    Executor().Do(inputs, {keys.MODEL: [output]}, {keys.CONFIG: config.to_json()})
    return output


def test_a_saved_model_is_prepared_and_factorized_and_its_report_agrees_with_the_saved_weights(tmp_path, inputs):
    output = run(tmp_path, inputs, CONFIG)
    assert sorted(p.name for p in Path(output.uri).iterdir()) == ["Format-Serving", "low_rank.json", "preparation.json"]
    report = LowRankReport.from_json(Path(output.uri, "low_rank.json").read_bytes())
    model = tf_keras.models.load_model(f"{output.uri}/Format-Serving")
    hidden = next(layer for layer in report.layers if layer.layer == "hidden")
    shapes = {v.name: tuple(v.shape) for v in model.trainable_weights if "kernel" in v.name}
    assert shapes["hidden_in/kernel:0"] == (12, hidden.ranks[0]) and shapes["hidden/kernel:0"] == (hidden.ranks[0], 40)
    assert sum(np.prod(shape) for shape in shapes.values()) == sum(layer.weights_after for layer in report.layers)
    assert output.get_float_custom_property("mac_share") == pytest.approx(report.macs_after / report.macs)
    assert model.optimizer is not None


def test_what_cannot_be_factorized_leaves_nothing_behind(tmp_path, inputs):
    with pytest.raises(EdgeError, match="no layer can be factorized with a saving"):
        run(tmp_path, inputs, CONFIG.model_copy(update={"rank": EnergyRank(energy=1.0)}))
    assert list((tmp_path / "output").iterdir()) == []
