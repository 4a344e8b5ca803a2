"""Keeps AutoGraph from rewriting Keras' own source, which TensorFlow 2.16 does and later ones don't."""

from tensorflow.python.autograph.core import config

_PACKAGE = "tf_keras"


def trace_keras_as_it_is() -> None:
    """Adds the rule that TensorFlow 2.21 has: functions of tf_keras are traced, not converted.

    TensorFlow has long had it for `keras` and 2.16, which Keras 2 had just left for a package of its own, lacks it for
    `tf_keras`. The first training in a process then takes 14 s of CPU more, the first saving of a model as well. Setting
    it again changes nothing.
    """
    if not any(rule.matches(_PACKAGE) for rule in config.CONVERSION_RULES):
        config.CONVERSION_RULES = (*config.CONVERSION_RULES, config.DoNotConvert(_PACKAGE))
