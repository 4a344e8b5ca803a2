"""Distillation: the loss by its formula, the student's shape, and that a student learns from its teacher alone."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.distillation import distill, scaled_student
from tfx_edge.optimize.distillation.loss import Outputs, soft_loss
from tfx_edge.schemas import DistillationConfig, EarlyStopping, EdgeError, FeatureMatch, FineTuningConfig, ScaledStudent

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 6)).astype(np.float32)
TRUTH = X[:, :3].argmax(1)
NOISE = RANDOM.integers(0, 3, 300)  # labels that tell nothing


def data(labels=TRUTH, name="x"):
    return tf.data.Dataset.from_tensor_slices(({name: X, "unused": X[:, 0]}, labels))


def config(student=None, **settings):
    tuning = {"label_key": "y", "epochs": 20, "batch_size": 50, "learning_rate": 0.02, **settings.pop("tuning", {})}
    return DistillationConfig(student=student or ScaledStudent(), fine_tuning=FineTuningConfig(**tuning), **settings)


@pytest.fixture(scope="module")
def teacher():
    tf_keras.utils.set_random_seed(0)
    inputs = layers.Input((6,), name="x")
    hidden = layers.BatchNormalization(name="norm")(layers.Dense(24, "relu", name="wide")(inputs))
    hidden = layers.Dropout(0.2)(layers.Dense(24, "relu", name="again")(hidden))
    model = tf_keras.Model(inputs, layers.Dense(3, "softmax", name="head")(hidden), name="teacher_model")
    model.compile(tf_keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(X, TRUTH, epochs=25, verbose=0)
    return model


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_the_soft_loss_is_the_divergence_of_the_softened_distributions():
    s, t = RANDOM.normal(size=(2, 7, 5)) * 4
    p, q = softmax(t / 3), softmax(s / 3)
    expected = 9 * np.sum(p * np.log(p / q), axis=1).mean()
    of_logits = soft_loss(tf.constant(s), tf.constant(t), Outputs("softmax", logits=True), 3.0)
    of_probabilities = soft_loss(tf.constant(softmax(s)), tf.constant(softmax(t)), Outputs("softmax", logits=False), 3.0)
    np.testing.assert_allclose([of_logits, of_probabilities], expected, rtol=1e-4)
    p, q = (1 / (1 + np.exp(-z / 3)) for z in (t, s))
    expected = 9 * np.mean(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)))
    np.testing.assert_allclose(soft_loss(tf.constant(s), tf.constant(t), Outputs("sigmoid", logits=True), 3.0), expected, rtol=1e-4)
    sigmoid = [tf.constant(1 / (1 + np.exp(-z))) for z in (s, t)]
    np.testing.assert_allclose(soft_loss(*sigmoid, Outputs("sigmoid", logits=False), 3.0), expected, rtol=1e-3)
    np.testing.assert_allclose(soft_loss(tf.constant(s), tf.constant(t), Outputs("regression", False), 3.0), np.mean((s - t) ** 2))


def test_from_labels_that_tell_nothing_a_student_learns_what_its_teacher_knows(teacher):
    before = teacher.get_weights()
    taught, report = distill(teacher, data(NOISE), config(alpha=1.0))
    alone, _ = distill(teacher, data(NOISE), config(alpha=0.0))
    accuracy = {name: np.mean(m.predict(X, verbose=0).argmax(1) == TRUTH) for name, m in (("taught", taught), ("alone", alone))}
    assert accuracy["taught"] > 0.85 and accuracy["alone"] < 0.7
    for old, new in zip(before, teacher.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert report.task == "classification" and report.temperature == 4.0
    assert (report.teacher_parameters, report.student_parameters) == (teacher.count_params(), taught.count_params())
    assert len(report.losses["teacher_loss"]) == 20 and report.losses["teacher_loss"][-1] < 0.3 * report.losses["teacher_loss"][0]
    assert taught.input_names == ["x"] and taught.get_layer("wide").units == 12
    assert taught.evaluate(X, TRUTH, verbose=0)[1] == pytest.approx(accuracy["taught"])  # compiled as the teacher


def test_the_loss_is_the_labels_and_the_teachers_by_alpha(teacher):
    _, report = distill(
        teacher,
        data(),
        config(
            alpha=0.3,
            features=(FeatureMatch(teacher="again"),),
            feature_weight=0.5,
            tuning={"epochs": 1, "batch_size": 300, "early_stopping": EarlyStopping()},
        ),
        validation=data(NOISE),
    )
    student, _ = distill(
        teacher,
        data(),
        config(alpha=0.3, features=(FeatureMatch(teacher="again"),), feature_weight=0.5, tuning={"epochs": 1, "batch_size": 300}),
    )
    p, q = (np.float64(m.predict(X, verbose=0)) for m in (teacher, student))
    hard = -np.log(q[np.arange(300), NOISE]).mean()
    expected = 0.7 * hard + 0.3 * report.losses["val_teacher_loss"][0] + 0.5 * report.losses["val_feature_loss"][0]
    assert report.losses["val_loss"][0] == pytest.approx(expected, rel=1e-3)
    soft = [np.exp(np.log(v) / 4) / np.exp(np.log(v) / 4).sum(1, keepdims=True) for v in (p, q)]
    assert report.losses["val_teacher_loss"][0] == pytest.approx(16 * (soft[0] * np.log(soft[0] / soft[1])).sum(1).mean(), rel=1e-3)


def test_features_of_another_width_are_matched_through_a_projection(teacher):
    _, report = distill(teacher, data(), config(features=(FeatureMatch(teacher="wide"), FeatureMatch(teacher="head"))))
    assert [(m.student, m.projected) for m in report.matched] == [("wide", True), ("head", False)]
    assert report.losses["feature_loss"][-1] < 0.6 * report.losses["feature_loss"][0]


def test_a_regression_follows_the_teachers_numbers():
    inputs = layers.Input((6,), name="x")
    linear = layers.Dense(1, name="head")
    regressor = tf_keras.Model(inputs, linear(layers.Dense(8, name="inner")(inputs)))
    regressor.compile("adam", "mean_squared_error")
    wanted = regressor.predict(X, verbose=0)[:, 0]
    student, report = distill(regressor, data(NOISE.astype(np.float32)), config(alpha=1.0))
    assert report.task == "regression" and report.temperature == 1.0
    assert np.mean((student.predict(X, verbose=0)[:, 0] - wanted) ** 2) < 0.05 * wanted.var()


def test_a_student_given_as_a_function_is_trained(teacher):
    def student_fn(given):
        assert given is teacher
        return tf_keras.Sequential([layers.InputLayer((6,), name="x"), layers.Dense(5, "relu"), layers.Dense(3, "softmax")], name="mine")

    student, report = distill(teacher, data(NOISE), config(alpha=1.0, tuning={"epochs": 40}), student_fn=student_fn)
    assert report.student_parameters == 7 * 5 + 6 * 3
    assert np.mean(student.predict(X, verbose=0).argmax(1) == TRUTH) > 0.8


@pytest.mark.parametrize(
    ("layer_sizes", "name", "text"),
    [
        ((6, 4), "x", r"output has shape \(None, 4\), the teacher's \(None, 3\)"),
        ((6, 3), "z", "input 'z' is none of the teacher's, x"),
        ((5, 3), "x", r"input 'x' is float32 \(None, 5\)"),
    ],
)
def test_a_student_that_doesnt_fit_its_teacher_is_refused(teacher, layer_sizes, name, text):
    def student_fn(given):
        inputs = layers.Input((layer_sizes[0],), name=name)
        return tf_keras.Model(inputs, layers.Dense(layer_sizes[1], "softmax")(inputs))

    with pytest.raises(EdgeError, match=text):
        distill(teacher, data(), config(), student_fn=student_fn)


def test_features_that_cant_be_matched_are_named(teacher):
    with pytest.raises(EdgeError, match="teacher 'teacher_model' has no layer 'middle'.*wide"):
        distill(teacher, data(), config(features=(FeatureMatch(teacher="middle"),)))


def convnet():
    inputs = layers.Input((8, 8, 3), name="image")
    x = layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0], name="scale")(inputs)
    x = layers.Conv2D(16, 3, padding="same", name="stem")(x)
    for i in range(4):
        y = layers.Conv2D(16, 3, padding="same", name=f"conv{i}")(x)
        y = layers.ReLU(name=f"relu{i}")(layers.BatchNormalization(name=f"norm{i}")(y))
        x = layers.Add(name=f"add{i}")([x, y]) if i == 3 else y
    x = layers.DepthwiseConv2D(3, name="depthwise")(x)
    x = layers.Dense(10, name="logits")(layers.GlobalAveragePooling2D()(x))
    return tf_keras.Model(inputs, layers.Softmax(name="softmax")(x))


def test_a_scaled_student_has_narrower_layers_and_the_same_output():
    teacher = convnet()
    student = scaled_student(teacher, ScaledStudent(width=0.25))
    assert [student.get_layer(n).filters for n in ("stem", "conv0", "conv3")] == [4] * 3
    assert student.get_layer("depthwise").weights[0].shape == (3, 3, 4, 1) and student.get_layer("logits").units == 10
    assert student.input_names == teacher.input_names and student.output_shape == teacher.output_shape
    image = RANDOM.normal(size=(2, 8, 8, 3)).astype(np.float32)
    np.testing.assert_allclose(student.get_layer("scale")(image), teacher.get_layer("scale")(image), rtol=1e-5)
    whole = scaled_student(teacher, ScaledStudent(width=1.0))
    assert whole.count_params() == teacher.count_params()


def test_depth_drops_repeated_layers_with_what_follows_them():
    student = scaled_student(convnet(), ScaledStudent(width=1.0, depth=0.5))
    names = {layer.name for layer in student.layers}
    assert {"conv0", "relu1", "norm1", "stem", "depthwise"} <= names
    assert not names & {"conv2", "conv3", "norm2", "norm3", "relu2", "relu3"}
    assert student(np.zeros((1, 8, 8, 3), np.float32)).shape == (1, 10)


def test_recurrent_layers_embeddings_and_wrappers_are_scaled():
    inputs = layers.Input((5,), name="tokens", dtype="int64")
    x = layers.Embedding(50, 12, name="embed")(inputs)
    x = layers.Bidirectional(layers.LSTM(8), name="both")(x)
    student = scaled_student(tf_keras.Model(inputs, layers.Dense(2, name="head")(x)), ScaledStudent(width=0.5))
    assert student.get_layer("embed").output_dim == 6 and student.get_layer("both").forward_layer.units == 4
    assert student.get_layer("both").backward_layer.units == 4 and student.output_shape == (None, 2)


def test_layers_that_no_longer_fit_each_other_are_named_with_the_way_out():
    inputs = layers.Input((6,), name="x")
    x = layers.Reshape((4, 4), name="square")(layers.Dense(16, name="wide")(inputs))
    model = tf_keras.Model(inputs, layers.Dense(2)(layers.Flatten()(x)), name="square_model")
    with pytest.raises(EdgeError, match=r"teacher 'square_model', scaled to width 0\.5.*square.*student_fn") as error:
        scaled_student(model, ScaledStudent(width=0.5))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "student_fn", [lambda t: t, lambda t: tf_keras.Model(t.input, layers.Dense(3, "softmax")(t.get_layer("wide").output))]
)
def test_a_student_with_weights_of_its_teacher_is_refused_and_the_teacher_stays(teacher, student_fn):
    before = [weight.copy() for weight in teacher.get_weights()]
    with pytest.raises(EdgeError, match="layer 'wide' has the teacher's own weights"):
        distill(teacher, data(), config(tuning={"epochs": 1}), student_fn=student_fn)
    for old, new in zip(before, teacher.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_student_of_logits_is_refused_for_a_teacher_of_probabilities(teacher):
    def logits(t):
        inputs = layers.Input((6,), name="x")
        return tf_keras.Model(inputs, layers.Dense(3, name="raw")(inputs))

    with pytest.raises(EdgeError, match="'raw' has the activation linear.*activation='softmax'"):
        distill(teacher, data(), config(tuning={"epochs": 1}), student_fn=logits)


@pytest.mark.parametrize("behind", [layers.Activation("linear"), layers.Reshape((3,)), layers.Dropout(0.1)])
def test_a_layer_that_only_passes_probabilities_on_hides_neither_them_nor_logits(teacher, behind):
    def student(activation):
        inputs = layers.Input((6,), name="x")
        return tf_keras.Model(inputs, behind.__class__.from_config(behind.get_config())(layers.Dense(3, activation)(inputs)))

    distill(teacher, data(), config(tuning={"epochs": 1}), student_fn=lambda t: student("softmax"))
    with pytest.raises(EdgeError, match="has the activation linear.*activation='softmax'"):
        distill(teacher, data(), config(tuning={"epochs": 1}), student_fn=lambda t: student(None))


def test_the_penalties_of_a_frozen_teacher_are_no_part_of_the_loss():
    def losses(**penalties):
        tf_keras.utils.set_random_seed(0)
        inputs = layers.Input((6,), name="x")
        model = tf_keras.Model(inputs, layers.Dense(3, "softmax", **penalties)(layers.Dense(8, "relu", **penalties)(inputs)))
        model.compile("sgd", "sparse_categorical_crossentropy")
        student = tf_keras.models.clone_model(model, clone_function=lambda layer: type(layer).from_config({**layer.get_config(), **plain}))
        _, report = distill(model, data(), config(tuning={"epochs": 2}), student_fn=lambda t: student)
        return report.losses["loss"]

    plain = {"kernel_regularizer": None, "activity_regularizer": None}
    np.testing.assert_allclose(losses(kernel_regularizer="l2", activity_regularizer="l1"), losses(), rtol=1e-6)


@pytest.mark.parametrize(
    ("wrapper", "inner"), [(layers.Bidirectional, layers.SimpleRNN), (layers.TimeDistributed, layers.Dense)], ids=["both", "distributed"]
)
def test_layers_in_wrappers_teach_without_their_penalties_and_are_scaled(wrapper, inner):
    penalties = {"kernel_regularizer": "l2", "activity_regularizer": "l1"}
    wrapped = wrapper(inner(4, **penalties), name="wrapped")
    teacher = tf_keras.Sequential(
        [layers.InputLayer((6, 1), name="x"), wrapped, layers.Flatten(), layers.Dense(3, "softmax", name="head", **penalties)]
    )
    teacher.compile("sgd", "sparse_categorical_crossentropy")
    examples = tf.data.Dataset.from_tensor_slices(({"x": X[:40, :, None]}, TRUTH[:40]))

    def plain(_):
        return tf_keras.Sequential([layers.InputLayer((6, 1), name="x"), layers.Flatten(), layers.Dense(3, "softmax")])

    _, report = distill(teacher, examples, config(alpha=1.0, tuning={"epochs": 1}), student_fn=plain)
    assert report.losses["loss"] == pytest.approx(report.losses["teacher_loss"], rel=1e-5)
    student = scaled_student(teacher, ScaledStudent(width=0.5))
    assert student.get_layer("wrapped").output_shape[-1] == teacher.get_layer("wrapped").output_shape[-1] / 2


@pytest.mark.parametrize(("given", "text"), [(tf_keras.Sequential(), "a model"), ("module.student", "a str")])
def test_a_student_fn_that_is_no_function_is_refused(teacher, given, text):
    with pytest.raises(EdgeError, match=f"student_fn is {text}, not a function; give a function of the teacher that makes the student"):
        distill(teacher, data(), config(), student_fn=given)
