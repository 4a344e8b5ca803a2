"""The component on artifacts built by hand, from a saved model and Examples in to a pruned model out."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from example_shards import example, examples_artifact, schema, schema_artifact, transform_graph_artifact
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from tfx_edge.components import keys
from tfx_edge.components.pruner.component import Pruner
from tfx_edge.components.pruner.executor import Executor
from tfx_edge.schemas import EdgeError, FilterReport, Filters, FineTuningConfig, PruningConfig, SparsityReport

NAMES = ("a", "b", "c")
SCHEMA = schema(**dict.fromkeys(NAMES, ("FLOAT",)), unused=("BYTES",), label=("INT",))
CONFIG = PruningConfig(
    target_sparsity=0.5, layers=("hidden",), fine_tuning=FineTuningConfig(label_key="label", epochs=2, batch_size=32, learning_rate=0.01)
)
VALUES = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
LABELS = VALUES.argmax(axis=1)

MODEL_FN = """
import tf_keras
def build():
    inputs = [tf_keras.Input((1,), name=name) for name in "abc"]
    hidden = tf_keras.layers.Dense(16, "relu", name="hidden")(tf_keras.layers.concatenate(inputs))
    return tf_keras.Model(inputs, tf_keras.layers.Dense(3, name="head")(hidden))
"""


def built():
    scope = {}
    exec(MODEL_FN, scope)
    return scope["build"]()


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    """A Model artifact as a Trainer writes it, trained."""
    tf_keras.utils.set_random_seed(3)
    model = built()
    model.compile(tf_keras.optimizers.Adam(0.02), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(list(VALUES.T[..., None]), LABELS, epochs=12, verbose=0)
    return model_artifact(tmp_path_factory.mktemp("model"), lambda path: model.save(path, save_format="tf"))


def model_artifact(folder, save):
    artifact = standard_artifacts.Model()
    artifact.uri = str(folder)
    save(str(folder / "Format-Serving"))
    return artifact


def records(without=None):
    rows = [
        {**{n: [float(v)] for n, v in zip(NAMES, row, strict=True)}, "unused": [b"x"], "label": [int(label)]}
        for row, label in zip(VALUES, LABELS, strict=True)
    ]
    if without:
        del rows[77][without]
    return [example(row) for row in rows]


def run(folder: Path, model, config=CONFIG, examples=None, features=SCHEMA, model_fn=None, given=keys.TRANSFORM_GRAPH):
    """Runs the executor on two shards of a split "train" and returns the output artifact."""
    output = standard_artifacts.Model()
    output.uri = str(folder / "output")
    Path(output.uri).mkdir(parents=True, exist_ok=True)  # as TFX does
    shards = [records()[:150], records()[150:]] if examples is None else [examples]
    make = {keys.TRANSFORM_GRAPH: transform_graph_artifact, keys.SCHEMA: schema_artifact}[given]
    inputs = {
        keys.FLOAT_MODEL: [model],
        keys.EXAMPLES: [examples_artifact(folder / "examples", {"train": shards, "empty": [[]]})],
        given: [make(folder / given, features)],
    }
    Executor().Do(inputs, {keys.MODEL: [output]}, {keys.CONFIG: config.to_json(), keys.MODEL_FN: model_fn})
    return output


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


@pytest.mark.parametrize("given", [keys.TRANSFORM_GRAPH, keys.SCHEMA])
def test_a_saved_model_is_pruned_and_its_report_agrees_with_the_saved_weights(tmp_path, saved_model, given):
    output = run(tmp_path, saved_model, given=given)
    assert [name for name in files(output.uri) if not name.startswith("Format-Serving/")] == ["preparation.json", "sparsity.json"]
    report = SparsityReport.from_json(Path(output.uri, "sparsity.json").read_bytes())
    model = tf_keras.models.load_model(f"{output.uri}/Format-Serving")
    kernels = {v.name: v.numpy() for v in model.weights}
    assert (kernels["hidden/kernel:0"] == 0).sum() == 24
    assert (kernels["head/kernel:0"] == 0).sum() == 0
    assert report.sparsity == output.get_float_custom_property("sparsity") == 0.5
    assert [(layer.layer, layer.zeros, layer.pruned) for layer in report.layers] == [("hidden", 24, True), ("head", 0, False)]
    assert model.evaluate(list(VALUES.T[..., None]), LABELS, verbose=0)[1] > 0.9  # compiled: from_logits, accuracy
    assert sorted(model.input_names) == list(NAMES)


def test_with_filters_the_saved_model_is_smaller_and_the_report_is_another(tmp_path, saved_model):
    output = run(tmp_path, saved_model, CONFIG.model_copy(update={"granularity": Filters(multiple_of=4)}))
    model = tf_keras.models.load_model(Path(output.uri, "Format-Serving"))
    report = FilterReport.from_json(Path(output.uri, "filters.json").read_bytes())
    assert {layer.layer: layer.kept for layer in report.layers} == {"hidden": 8, "head": 3}
    assert model.get_layer("hidden").units == 8
    assert model.count_params() == report.parameters_after == output.get_int_custom_property("parameters") < report.parameters_before
    assert not Path(output.uri, "sparsity.json").exists()


def test_a_model_without_keras_metadata_needs_model_fn_and_the_error_names_both_cures(tmp_path, monkeypatch):
    model = built()
    artifact = model_artifact(tmp_path / "model", lambda path: tf.saved_model.save(model, path))
    with pytest.raises(EdgeError, match=r"tfx_edge.pipelines.save_model\(model, fn_args\).*model_fn='package.module.function'"):
        run(tmp_path / "without", artifact)
    assert files(tmp_path / "without" / "output") == []

    (tmp_path / "builders_of_this_test.py").write_text(MODEL_FN)
    monkeypatch.syspath_prepend(tmp_path)
    loss = {"loss": "sparse_categorical_crossentropy", "from_logits": True}
    config = CONFIG.model_copy(update={"fine_tuning": CONFIG.fine_tuning.model_copy(update=loss)})
    output = run(tmp_path / "with", artifact, config, model_fn="builders_of_this_test.build")
    assert output.get_float_custom_property("sparsity") == 0.5


def with_fine_tuning(**values):
    return CONFIG.model_copy(update={"fine_tuning": CONFIG.fine_tuning.model_copy(update=values)})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"config": with_fine_tuning(split="test")}, r"split 'test'"),
        ({"config": with_fine_tuning(split="empty")}, r"split 'empty'.*no examples"),
        ({"config": with_fine_tuning(label_key="lable")}, r"label 'lable'"),
        ({"features": schema(a=("FLOAT",), b=("FLOAT",), label=("INT",))}, r"feature 'c': not among the transformed features a, b, label"),
        ({"features": schema(a=("FLOAT",), b=("FLOAT",), c=("FLOAT", 2), label=("INT",))}, r"can't be read by the schema: .*Key: c"),
        ({"examples": records(without="b")}, r"can't be read by the schema: .*Feature: b"),
        ({"config": CONFIG.model_copy(update={"layers": ("hiden",)})}, r"'hiden' matches no layer.*hidden"),
    ],
)
def test_bad_input_is_one_line_that_names_it_and_leaves_nothing_behind(tmp_path, saved_model, arguments, text):
    with pytest.raises(EdgeError, match=text) as error:
        run(tmp_path, saved_model, **arguments)
    assert "\n" not in str(error.value)
    assert files(tmp_path / "output") == []


def test_a_write_that_fails_half_way_leaves_nothing_behind(tmp_path, saved_model):
    (tmp_path / "output" / "sparsity.json" / "taken").mkdir(parents=True)  # where the report, written last, would go
    with pytest.raises(Exception, match=r"sparsity\.json"):
        run(tmp_path, saved_model)
    assert not (tmp_path / "output" / "Format-Serving").exists()


def channels():
    return {
        "model": Channel(type=standard_artifacts.Model),
        "examples": Channel(type=standard_artifacts.Examples),
    }


def test_the_config_is_stored_as_json_or_left_to_the_run():
    graph = Channel(type=standard_artifacts.TransformGraph)
    pruner = Pruner(**channels(), transform_graph=graph, config=CONFIG)
    assert PruningConfig.from_json(pruner.exec_properties[keys.CONFIG]) == CONFIG
    assert pruner.outputs[keys.MODEL].type is standard_artifacts.Model
    parameter = RuntimeParameter(name="pruning", ptype=str)
    assert Pruner(**channels(), transform_graph=graph, config=parameter).exec_properties[keys.CONFIG] is parameter


def test_without_transform_graph_and_schema_the_pipeline_is_not_built():
    with pytest.raises(EdgeError, match="transform_graph nor schema"):
        Pruner(**channels(), config=CONFIG)
