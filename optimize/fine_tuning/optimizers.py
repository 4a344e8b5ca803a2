"""The optimizer with its learning rate over time and its limits on gradients: Keras' own, but for the warm-up."""

from typing import Any, TypeAlias

import tensorflow as tf
import tf_keras

from tfx_edge.schemas import FineTuningConfig
from tfx_edge.schemas.optimizers import ConstantRate, CosineRate, ExponentialRate, StepRate

_OPTIMIZERS = {
    "sgd": tf_keras.optimizers.SGD,
    "adam": tf_keras.optimizers.Adam,
    "adamw": tf_keras.optimizers.AdamW,
    "rmsprop": tf_keras.optimizers.RMSprop,
}
_CLIPPING = {"value": "clipvalue", "norm": "clipnorm", "global_norm": "global_clipnorm"}

Schedule: TypeAlias = tf_keras.optimizers.schedules.LearningRateSchedule


@tf_keras.saving.register_keras_serializable("tfx_edge")
class WarmUp(Schedule):
    """Rises linearly, then follows another schedule from its start (Goyal et al. 2017, https://arxiv.org/abs/1706.02677).

    >>> [round(float(WarmUp(0.4, 4, None)(step)), 2) for step in range(6)]
    [0.1, 0.2, 0.3, 0.4, 0.4, 0.4]
    """

    def __init__(self, peak: float, steps: int, after: Schedule | None) -> None:
        """Takes the learning rate at the end of the rise, its number of steps, and what comes then; None: the peak for good."""
        super().__init__()
        self.peak, self.steps, self.after = peak, steps, after

    def __call__(self, step: Any) -> tf.Tensor:
        """The learning rate of a step, counted from 0."""
        step = tf.cast(step, tf.float32)
        after = self.peak if self.after is None else self.after(tf.maximum(step - self.steps, 0.0))
        return tf.where(step < self.steps, self.peak * (step + 1) / self.steps, after)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"peak": self.peak, "steps": self.steps, "after": self.after and tf_keras.optimizers.schedules.serialize(self.after)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "WarmUp":
        """What `get_config` gave."""
        after = config["after"]
        return cls(config["peak"], config["steps"], tf_keras.optimizers.schedules.deserialize(after) if after else None)


def needs_steps(config: FineTuningConfig) -> bool:
    """Whether the learning rate depends on the number of all steps."""
    return config.warm_up > 0 or not isinstance(config.schedule, ConstantRate)


def make_optimizer(config: FineTuningConfig, steps: int) -> tf_keras.optimizers.Optimizer:
    """A fresh optimizer.

    Args:
        config: which.
        steps: how many the training takes; of no effect unless `needs_steps`.
    """
    options = config.optimizer.model_dump(exclude={"kind"})
    if config.clipping is not None:
        options[_CLIPPING[config.clipping.by]] = config.clipping.limit
    return _OPTIMIZERS[config.optimizer.kind](learning_rate=learning_rate(config, steps), **options)


def learning_rate(config: FineTuningConfig, steps: int) -> float | Schedule:
    """A number, or a schedule over as many steps."""
    warm = round(config.warm_up * steps)
    after = None if isinstance(config.schedule, ConstantRate) else _after(config.schedule, config.learning_rate, max(steps - warm, 1))
    if warm:
        return WarmUp(config.learning_rate, warm, after)
    return config.learning_rate if after is None else after


def _after(schedule: ExponentialRate | CosineRate | StepRate, rate: float, steps: int) -> Any:
    schedules = tf_keras.optimizers.schedules
    if isinstance(schedule, ExponentialRate):
        return schedules.ExponentialDecay(rate, decay_steps=steps, decay_rate=schedule.final)
    if isinstance(schedule, CosineRate):
        return schedules.CosineDecay(rate, decay_steps=steps, alpha=schedule.final)
    # Keras' boundaries are the last steps of the rate before; as floats, since `WarmUp` hands over a float.
    boundaries = [float(round(share * steps) - 1) for share in schedule.at]
    return schedules.PiecewiseConstantDecay(boundaries, [rate * schedule.factor**i for i in range(len(boundaries) + 1)])
