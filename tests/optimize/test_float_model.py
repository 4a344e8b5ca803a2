import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import penguin_data
import penguins
import pytest
import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.pipelines.saving import save_model
from tfx_edge.schemas import EdgeError

FORMS = {"keras2": penguins.run_fn_keras2, "saved_model": penguins.run_fn_saved_model, "keras3": penguins.run_fn_keras3}


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What TFX hands to run_fn, after Transform ran on the penguins."""
    return penguin_data.transform(tmp_path_factory.mktemp("penguins"))


@pytest.fixture(scope="module")
def saved(trainer: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same model as each kind of Trainer saves it."""
    folders = {}
    for name, run_fn in FORMS.items():
        folders[name] = str(tmp_path_factory.mktemp(name))
        run_fn(SimpleNamespace(**{**vars(trainer), "serving_model_dir": folders[name]}))
    return folders


def transformed_examples(trainer: SimpleNamespace) -> dict[str, np.ndarray]:
    transform = tft.TFTransformOutput(trainer.transform_output)
    raw = tf.io.parse_example(penguin_data.raw_examples(), transform.raw_feature_spec())
    return {k: v.numpy() for k, v in transform.transform_features_layer()(raw).items()}


@pytest.mark.parametrize("form", FORMS)
def test_whatever_a_trainer_saves_predicts_on_transformed_features_as_its_serving_signature_does_on_raw_ones(
    form: str, saved: dict[str, str], trainer: SimpleNamespace
) -> None:
    model = load_float_model(saved[form], trainer.transform_output)
    want = next(iter(tf.saved_model.load(saved[form]).signatures["serving_default"](tf.constant(penguin_data.raw_examples())).values()))
    (have,) = model.predict(transformed_examples(trainer)).values()
    np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)
    assert sorted(model.signature.input_names) == sorted(penguins.FEATURES)


@pytest.mark.parametrize("form", FORMS)
def test_a_float_model_saved_for_the_converter_takes_named_features_and_predicts_the_same(
    form: str, saved: dict[str, str], trainer: SimpleNamespace, tmp_path: Path
) -> None:
    model = load_float_model(saved[form], trainer.transform_output)
    model.save(str(tmp_path / "plain"))
    again = load_float_model(str(tmp_path / "plain"))
    features = transformed_examples(trainer)
    for name, value in model.predict(features).items():
        np.testing.assert_allclose(again.predict(features)[name], value, rtol=1e-6, atol=1e-6)
    size = sum(f.stat().st_size for f in (tmp_path / "plain").rglob("*") if f.is_file())
    assert size < 200_000, "parsing and preprocessing must not be saved along"


def test_only_a_keras_2_saved_model_brings_a_keras_model_and_it_is_free_of_the_transform_layer_and_compiled(
    saved: dict[str, str], trainer: SimpleNamespace
) -> None:
    models = {form: load_float_model(saved[form], trainer.transform_output).keras_model for form in FORMS}
    assert models["saved_model"] is None and models["keras3"] is None
    keras_model = models["keras2"]
    assert isinstance(keras_model, tf_keras.Model)
    assert not any("transform" in layer.name for layer in keras_model.layers)
    features = [np.zeros((2, 1), np.float32)] * 4
    results = keras_model.evaluate(features, np.zeros(2, np.int64), verbose=0, return_dict=True)
    assert set(results) == {"loss", "sparse_categorical_accuracy"}
    tf_keras.models.clone_model(keras_model)  # what tfmot does first, and what a transform layer breaks


@pytest.mark.parametrize("form", ["saved_model", "keras3"])
def test_model_fn_rebuilds_the_keras_model_with_the_saved_weights(form: str, saved: dict[str, str], trainer: SimpleNamespace) -> None:
    plain = load_float_model(saved[form], trainer.transform_output)
    rebuilt = load_float_model(saved[form], trainer.transform_output, model_fn="penguins.build_model")
    assert isinstance(rebuilt.keras_model, tf_keras.Model)
    features = transformed_examples(trainer)
    np.testing.assert_allclose(*(next(iter(m.predict(features).values())) for m in (plain, rebuilt)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("model_fn", "message"),
    [
        ("penguins.no_such_function", "no_such_function.*expected an import path"),
        ("no_such_module.build", "no_such_module.*expected an import path"),
        ("penguins.preprocessing_fn_of_nothing", "expected an import path"),
        ("float_model_builders.wider", r"hidden_0/kernel \(4, 32\) isn't among the saved ones"),
        ("float_model_builders.other_activation", "outputs differ by"),
        ("float_model_builders.number", "returned builtins.int; expected a functional tf_keras.Model"),
    ],
)
def test_a_model_fn_that_builds_another_model_is_refused(
    model_fn: str, message: str, saved: dict[str, str], trainer: SimpleNamespace
) -> None:
    with pytest.raises(EdgeError, match=message):
        load_float_model(saved["saved_model"], trainer.transform_output, model_fn=model_fn)


def test_save_model_writes_a_form_that_loads_as_keras_and_serves_raw_examples(trainer: SimpleNamespace, tmp_path: Path) -> None:
    model = penguins.build_model()
    save_model(model, SimpleNamespace(**{**vars(trainer), "serving_model_dir": str(tmp_path)}), label_key=penguins.LABEL)
    loaded = load_float_model(str(tmp_path), trainer.transform_output)
    assert loaded.keras_model is not None
    unlabelled = []
    for record in penguin_data.raw_examples():
        example = tf.train.Example.FromString(record)
        del example.features.feature[penguins.LABEL]
        unlabelled.append(example.SerializeToString())
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"](tf.constant(unlabelled))
    np.testing.assert_allclose(
        served["probabilities"], loaded.predict(transformed_examples(trainer))["probabilities"], rtol=1e-6, atol=1e-6
    )


def test_save_model_converts_a_keras_3_model(trainer: SimpleNamespace, tmp_path: Path) -> None:
    import keras

    model = penguins._dense(keras)
    save_model(model, SimpleNamespace(**{**vars(trainer), "serving_model_dir": str(tmp_path)}), label_key=penguins.LABEL)
    loaded = load_float_model(str(tmp_path))
    assert loaded.keras_model is not None
    batch = {name: np.linspace(-1, 1, 7, dtype=np.float32)[:, None] * (i + 1) for i, name in enumerate(penguins.FEATURES)}
    expected = model.predict([batch[name] for name in penguins.FEATURES], verbose=0)
    np.testing.assert_allclose(next(iter(loaded.predict(batch).values())), expected, atol=1e-6)


def test_save_model_refuses_inputs_that_are_no_transformed_features(trainer: SimpleNamespace, tmp_path: Path) -> None:
    inputs = tf_keras.Input((1,), name="wingspan")
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(1)(inputs))
    with pytest.raises(EdgeError, match="inputs wingspan are no transformed features .*body_mass_g"):
        save_model(model, SimpleNamespace(**{**vars(trainer), "serving_model_dir": str(tmp_path)}))


def test_a_cut_needs_the_transform_graph_and_says_so(saved: dict[str, str]) -> None:
    with pytest.raises(EdgeError, match="takes serialized tf.Examples; give transform_graph"):
        load_float_model(saved["keras3"])


def test_a_cut_against_another_transform_graph_is_refused(saved: dict[str, str], trainer: SimpleNamespace, tmp_path: Path) -> None:
    other = tmp_path / "graph"
    shutil.copytree(trainer.transform_output, other)
    schema = other / "transformed_metadata" / "schema.pbtxt"
    schema.write_text(schema.read_text().replace('name: "body_mass_g"', 'name: "zz_body_mass"'))
    with pytest.raises(EdgeError, match="transform"):
        load_float_model(saved["keras3"], str(other))


def test_a_folder_without_a_saved_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match=f"no SavedModel at {tmp_path}"):
        load_float_model(str(tmp_path))


def test_a_model_that_no_form_covers_names_the_cure(tmp_path: Path) -> None:
    tf.saved_model.save(tf.Module(), str(tmp_path))
    with pytest.raises(EdgeError, match="can't be called on the transformed features.*save_model"):
        load_float_model(str(tmp_path))


def test_a_serving_signature_without_a_transform_layer_names_the_cure(trainer: SimpleNamespace, tmp_path: Path) -> None:
    module = tf.Module()
    module.v = tf.Variable([[1.0]])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_example(examples, {"body_mass_g": tf.io.FixedLenFeature([1], tf.float32)})
        return {"y": parsed["body_mass_g"] @ module.v}

    tf.saved_model.save(module, str(tmp_path), signatures={"serving_default": serve})
    with pytest.raises(EdgeError, match="no TransformFeaturesLayer to cut behind; save the model with tfx_edge.pipelines.save_model"):
        load_float_model(str(tmp_path), trainer.transform_output)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_named(value: float, tmp_path: Path) -> None:
    model = penguins.build_model()
    kernel, bias = model.get_layer("hidden_1").get_weights()
    kernel[3, 2] = value
    model.get_layer("hidden_1").set_weights([kernel, bias])
    model.save(tmp_path, save_format="tf")
    with pytest.raises(EdgeError, match="variable 'hidden_1/kernel' holds 1 NaN or infinite values of 256"):
        load_float_model(str(tmp_path))


def test_a_feature_of_the_wrong_kind_is_refused(saved: dict[str, str], trainer: SimpleNamespace) -> None:
    model = load_float_model(saved["keras2"], trainer.transform_output)
    features = transformed_examples(trainer)
    with pytest.raises(EdgeError, match="no feature 'body_mass_g'"):
        model.predict({k: v for k, v in features.items() if k != "body_mass_g"})
    with pytest.raises(EdgeError, match="an example has shape \\(2,\\), the model's input takes \\(1,\\)"):
        model.predict({**features, "body_mass_g": np.stack([features["body_mass_g"]] * 2, axis=1)})


@pytest.mark.parametrize("damaged", ["saved_model.pb", "keras_metadata.pb", "variables/variables.index"])
def test_a_saved_model_that_is_damaged_is_named_in_one_line(damaged: str, tmp_path: Path) -> None:
    penguins.build_model().save(tmp_path, save_format="tf")
    (tmp_path / damaged).write_bytes(b"garbage")
    with pytest.raises(EdgeError, match=f"the model at {tmp_path} can't be read: .*; save it again") as error:
        load_float_model(str(tmp_path))
    assert len(str(error.value).splitlines()) == 1
