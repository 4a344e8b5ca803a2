"""BatchNorm's moving statistics, taken again with the weights as they are."""

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.fine_tuning.layer_settings import norm_layers


def recalibrate(model: tf_keras.Model, batches: tf.data.Dataset, limit: int | None = None) -> None:
    """Puts the mean over batches of their means and variances in place of the moving ones (Wu and Johnson 2021, arxiv.org/abs/2105.07576).

    Moving statistics lag behind weights that change, and a technique that changes weights without training leaves them behind
    altogether. No other weight changes; dropout is off as in inference, other random layers are on as in training.

    Args:
        model: with BatchNormalization layers that are trainable; others are left.
        batches: of (inputs, label), as `input_batches` gives them.
        limit: at most as many batches.
    """
    norms = norm_layers(model)
    momenta = [layer.momentum for layer in norms]
    dropout = [x for x in model.submodules if isinstance(x, tf_keras.layers.Dropout)]
    rates = [layer.rate for layer in dropout]
    seen = 0
    try:
        for layer in dropout:
            layer.rate = 0.0
        for inputs, _ in batches if limit is None else batches.take(limit):
            size = int(tf.shape(tf.nest.flatten(inputs)[0])[0])
            for layer in norms:
                layer.momentum = seen / (seen + size)  # the moving average is then the mean of all examples so far
            model(inputs, training=True)
            seen += size
    finally:
        for layer, momentum in zip(norms, momenta, strict=True):
            layer.momentum = momentum
        for layer, rate in zip(dropout, rates, strict=True):
            layer.rate = rate
