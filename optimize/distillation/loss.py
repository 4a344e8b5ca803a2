"""What the student is asked for: the teacher's outputs, softened, and the teacher's features."""

from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf
import tf_keras

from tfx_edge.schemas import DistillationConfig

Kind = Literal["softmax", "sigmoid", "regression"]
_SMALLEST = 1e-12  # of a probability: its logarithm stays finite


@dataclass(frozen=True)
class Outputs:
    """What a model's outputs are.

    Attributes:
        kind: one of several classes, yes or no for each output, or plain numbers.
        logits: they are logits, not probabilities; of no meaning for a regression.
    """

    kind: Kind
    logits: bool


def outputs_of(loss: Any, width: int | None, config: DistillationConfig) -> Outputs:
    """Reads from a loss what the outputs are, where the config doesn't say.

    Args:
        loss: as Keras' compile takes it: an object, a function or a name.
        width: size of the outputs' last axis.
        config: `task` and `outputs` go first.

    >>> from tfx_edge.schemas import FineTuningConfig
    >>> config = DistillationConfig(fine_tuning=FineTuningConfig(label_key="y"))
    >>> outputs_of(tf_keras.losses.BinaryCrossentropy(from_logits=True), 1, config)
    Outputs(kind='sigmoid', logits=True)
    >>> outputs_of("mse", 1, config).kind
    'regression'
    """
    named: str = loss if isinstance(loss, str) else str(getattr(loss, "name", None) or getattr(loss, "__name__", type(loss).__name__))
    name = named.replace("_", "").lower()
    kind: Kind = "regression"
    if "binarycrossentropy" in name or "binaryfocalcrossentropy" in name:
        kind = "sigmoid"
    elif "crossentropy" in name:
        kind = "softmax"
    if config.task == "regression":
        kind = "regression"
    elif config.task == "classification" and kind == "regression":
        kind = "sigmoid" if width == 1 else "softmax"
    settings = loss.get_config() if isinstance(loss, tf_keras.losses.Loss) else {}
    return Outputs(kind, config.outputs == "logits" if config.outputs else bool(settings.get("from_logits", False)))


def soft_loss(student: tf.Tensor, teacher: tf.Tensor, outputs: Outputs, temperature: float) -> tf.Tensor:
    """The mean over examples (and places) of how far the student's outputs are from the teacher's.

    For classes T² KL(teacher || student) of the distributions at temperature T, after Hinton et al. 2015; the factor keeps the
    gradients as large as at T = 1. For yes or no the same of each output. For numbers the squared error.

    Args:
        student: float `[batch, ..., width]`.
        teacher: the same shape.
        outputs: what both are.
        temperature: T.

    Returns:
        A scalar, 0 where both are equal.
    """
    if outputs.kind == "regression":
        return tf.reduce_mean(tf.math.squared_difference(student, teacher))
    s, t = (_logits(x, outputs) / temperature for x in (student, teacher))
    if outputs.kind == "sigmoid":
        target = tf.sigmoid(t)
        cross = tf.nn.sigmoid_cross_entropy_with_logits(target, s) - tf.nn.sigmoid_cross_entropy_with_logits(target, t)
        return temperature**2 * tf.reduce_mean(cross)
    difference = tf.nn.log_softmax(t) - tf.nn.log_softmax(s)
    return temperature**2 * tf.reduce_mean(tf.reduce_sum(tf.nn.softmax(t) * difference, axis=-1))


def _logits(values: tf.Tensor, outputs: Outputs) -> tf.Tensor:
    """Logits; of probabilities those up to a constant that a softmax doesn't see."""
    values = tf.cast(values, tf.float32)
    if outputs.logits:
        return values
    logarithm = tf.math.log(tf.maximum(values, _SMALLEST))
    return logarithm - tf.math.log(tf.maximum(1 - values, _SMALLEST)) if outputs.kind == "sigmoid" else logarithm


class Lesson(tf_keras.layers.Layer):
    """Passes the student's output on and adds to the loss how far it is from the teacher's; both parts become metrics."""

    def __init__(self, outputs: Outputs, config: DistillationConfig, **kwargs: Any) -> None:
        """Takes what the outputs are and the weights."""
        super().__init__(**kwargs)
        self._outputs, self._config = outputs, config

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor, list[tf.Tensor], list[tf.Tensor]]) -> tf.Tensor:
        """Takes the student's output, the teacher's, the student's features and the teacher's."""
        student, teacher, features, wanted = inputs
        soft = soft_loss(student, teacher, self._outputs, self._config.temperature)
        self.add_loss(self._config.alpha * soft)
        self.add_metric(soft, name="teacher_loss")
        if features:
            errors = [tf.reduce_mean(tf.math.squared_difference(f, w)) for f, w in zip(features, wanted, strict=True)]
            error = tf.add_n(errors) / len(errors)
            self.add_loss(self._config.feature_weight * error)
            self.add_metric(error, name="feature_loss")
        return student
