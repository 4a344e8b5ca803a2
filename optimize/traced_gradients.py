"""Keeps TensorFlow from holding the graph of every training for ever."""

import contextlib
from collections.abc import Iterator

from tensorflow.python.framework import ops

_MADE_UP = "CustomGradient-"  # with a number: what tf.custom_gradient calls a gradient each time that it is traced


@contextlib.contextmanager
def forgetting_gradients() -> Iterator[None]:
    """Forgets the custom gradients that were traced inside, once what was traced with them isn't used any more.

    `tf.custom_gradient` enters each trace into a registry that only grows, and an entry holds its whole graph. Every `fit` traces one:
    an optimizer's all-reduce has a custom gradient (2 to 10 MB a training). Models that are used afterwards must come from a file:
    loading enters a file's own gradients anew.

    Source: `_graph_mode_decorator` in tensorflow/python/ops/custom_gradient.py.
    """
    registry = ops.gradient_registry
    before = set(registry.list())
    try:
        yield
    finally:
        for name in set(registry.list()) - before:
            if name.startswith(_MADE_UP):
                del registry._registry[name]  # which has no way to take one out
