"""Keras' own functions are traced as they are, on both TFX lines; the user's are still converted."""

import tf_keras
from tensorflow.python.autograph.core import config
from tensorflow.python.autograph.impl import conversion

from tfx_edge.optimize.keras_tracing import trace_keras_as_it_is


def test_keras_is_not_converted_but_user_code_is():
    trace_keras_as_it_is()
    assert conversion.is_allowlisted(tf_keras.Model.train_step)  # AutoGraph's word for what it leaves alone
    assert not conversion.is_allowlisted(test_keras_is_not_converted_but_user_code_is)


def test_setting_it_again_adds_nothing():
    trace_keras_as_it_is()
    rules = config.CONVERSION_RULES
    trace_keras_as_it_is()
    assert config.CONVERSION_RULES is rules
