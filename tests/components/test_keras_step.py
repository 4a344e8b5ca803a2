"""A step on the Keras side with functions of the user's in place of parts of its training."""

import pytest
import tf_keras
from example_shards import example, examples_artifact, schema, schema_artifact
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from tfx_edge.components import keys
from tfx_edge.components.keras_step import read_step
from tfx_edge.components.pruner.component import Pruner
from tfx_edge.schemas import CalibrationConfig, EdgeError


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("step")
    a = tf_keras.Input((1,), name="a")
    model = tf_keras.Model(a, tf_keras.layers.Dense(2, name="head")(a))
    model.compile("sgd", "mean_squared_error")
    artifact = standard_artifacts.Model()
    artifact.uri = str(folder / "model")
    model.save(f"{artifact.uri}/Format-Serving", save_format="tf")
    return {
        keys.FLOAT_MODEL: [artifact],
        keys.EXAMPLES: [
            examples_artifact(folder / "examples", {"train": [[example({"a": [float(i)], "label": [i % 2]}) for i in range(6)]]})
        ],
        keys.SCHEMA: [schema_artifact(folder / "schema", schema(a=("FLOAT",), label=("INT",)))],
    }


def test_the_users_functions_take_the_place_of_the_models_loss_and_of_the_examples_as_read(inputs, tmp_path, monkeypatch):
    (tmp_path / "functions_of_this_test.py").write_text(
        "import tf_keras\n"
        "def loss_fn():\n    return tf_keras.losses.Huber(delta=3.0)\n"
        "def dataset_fn(dataset):\n    return dataset.map(lambda features, label: (features, label + 10)).take(3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plain, own = (read_step(inputs, {keys.MODULE_PATH: path}) for path in (None, "functions_of_this_test"))
    assert "mean_squared_error" in str(plain.model.get_compile_config()["loss"]) and own.model.loss.get_config()["delta"] == 3.0
    assert [int(label) for _, label in plain.dataset("train", "label")] == [0, 1] * 3
    assert [int(label) for _, label in own.dataset("train", "label")] == [10, 11, 10]


def test_the_config_of_another_component_is_refused_when_the_pipeline_is_built():
    channels = {"model": Channel(type=standard_artifacts.Model), "examples": Channel(type=standard_artifacts.Examples)}
    with pytest.raises(EdgeError, match="Pruner: config is a CalibrationConfig; expected a PruningConfig"):
        Pruner(**channels, schema=Channel(type=standard_artifacts.Schema), config=CalibrationConfig())
