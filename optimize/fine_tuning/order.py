"""Which examples are trained on, in what order, and how many of them are in memory."""

import math

import tensorflow as tf

from tfx_edge.optimize.error_text import one_line
from tfx_edge.schemas import EdgeError, FineTuningConfig

_MEGABYTE = 2**20


def hold_out(
    dataset: tf.data.Dataset, config: FineTuningConfig, validation: tf.data.Dataset | None = None
) -> tuple[tf.data.Dataset, tf.data.Dataset | None]:
    """The examples to train on and those that early stopping looks at, by their places in the dataset: the same in each epoch."""
    stopping = config.early_stopping
    if validation is not None or stopping is None:
        return dataset, validation
    every = stopping.holdout

    def part(held: bool) -> tf.data.Dataset:
        return dataset.enumerate().filter(lambda i, _: (i % every == every - 1) == held).map(lambda _, example: example)

    return part(False), part(True)


def in_memory(dataset: tf.data.Dataset, config: FineTuningConfig) -> tuple[tf.data.Dataset, int]:
    """Keeps the examples in memory if they fit the bound.

    Their size is known from their specification and number, or read once.

    Returns:
        The dataset, kept or not, and how many examples the shuffle buffer may hold.
    """
    if config.memory_mb is None:
        return dataset, config.shuffle_buffer
    bound = int(config.memory_mb * _MEGABYTE)
    each, count = _example_bytes(dataset), int(dataset.cardinality())
    if each is None or count < 0:
        total, count = _measured(dataset)
        each = math.ceil(total / max(count, 1))
    if each * count <= bound:
        return dataset.cache(), config.shuffle_buffer  # the buffer holds references to what the cache holds
    return dataset, max(1, min(config.shuffle_buffer, bound // max(each, 1)))


def _example_bytes(dataset: tf.data.Dataset) -> int | None:
    specs = tf.nest.flatten(dataset.element_spec)
    known = all(isinstance(s, tf.TensorSpec) and s.shape.is_fully_defined() and s.dtype != tf.string for s in specs)
    return sum(s.shape.num_elements() * s.dtype.size for s in specs) if known else None


def _measured(dataset: tf.data.Dataset) -> tuple[int, int]:
    """Bytes of all examples, and how many there are."""

    def size(value: tf.Tensor) -> tf.Tensor:
        if value.dtype == tf.string:
            return tf.reduce_sum(tf.cast(tf.strings.length(value), tf.int64))
        return tf.size(value, tf.int64) * value.dtype.size

    def add(state: tuple[tf.Tensor, tf.Tensor], *example: object) -> tuple[tf.Tensor, tf.Tensor]:
        values = tf.nest.flatten(example, expand_composites=True)
        return state[0] + tf.add_n([size(value) for value in values]), state[1] + 1

    try:
        total, count = dataset.reduce((tf.constant(0, tf.int64), tf.constant(0, tf.int64)), add)
    except tf.errors.OpError as error:
        raise EdgeError(f"the training examples can't be read: {one_line(error)}; mend or remake them") from error
    return int(total), int(count)
