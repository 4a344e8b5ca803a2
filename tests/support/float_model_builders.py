"""Functions that a user could give as model_fn by mistake."""

import penguins
import tf_keras


def wider() -> tf_keras.Model:
    inputs = [tf_keras.Input((1,), name=name) for name in penguins.FEATURES]
    x = tf_keras.layers.Dense(32, name="hidden_0")(tf_keras.layers.concatenate(inputs))
    return tf_keras.Model(inputs, tf_keras.layers.Dense(3, name="probabilities")(x))


def other_activation() -> tf_keras.Model:
    inputs = [tf_keras.Input((1,), name=name) for name in penguins.FEATURES]
    x = tf_keras.layers.concatenate(inputs)
    for i in range(2):
        x = tf_keras.layers.Dense(16, activation="tanh", name=f"hidden_{i}")(x)
    return tf_keras.Model(inputs, tf_keras.layers.Dense(3, activation="softmax", name="probabilities")(x))


def number() -> int:
    return 3
