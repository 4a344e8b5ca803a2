"""What an example counts in the loss, by its class."""

import numpy as np
import tensorflow as tf

from tfx_edge.optimize.error_text import one_line
from tfx_edge.schemas import EdgeError, FineTuningConfig

_BATCH = 1024
_MOST_CLASSES = 100_000  # a label beyond is no class: an identifier, or a number to regress


def class_weights(dataset: tf.data.Dataset, config: FineTuningConfig) -> dict[int, float] | None:
    """Weights by class, as `Model.fit` takes them.

    Balanced are examples / (classes x examples of the class), as scikit-learn has them (King and Zeng 2001), so that the mean
    weight of an example is 1. The labels are read once for it.

    Args:
        dataset: of single examples; integer classes or one-hot labels.
        config: which weights.

    Raises:
        EdgeError: the labels can't be read, or are no classes.
    """
    if not config.class_weights:
        return None
    if config.class_weights != "balanced":
        return dict(enumerate(map(float, config.class_weights)))
    counts = np.zeros(0, np.int64)
    try:
        for labels in dataset.map(lambda _, label: label).batch(_BATCH).as_numpy_iterator():
            classes = np.asarray(labels).argmax(-1) if labels.ndim > 1 and labels.shape[-1] > 1 else labels.reshape(-1)
            _check(classes, config)
            seen = np.bincount(classes.astype(np.int64), minlength=len(counts))
            seen[: len(counts)] += counts
            counts = seen
    except tf.errors.OpError as error:
        raise EdgeError(f"label {config.label_key!r}: can't be read to weigh the classes: {one_line(error)}; mend the examples") from error
    present = np.count_nonzero(counts)
    return {i: float(counts.sum() / (present * count)) if count else 0.0 for i, count in enumerate(counts)}


def _check(classes: np.ndarray, config: FineTuningConfig) -> None:  # type: ignore[type-arg]
    bad = (classes < 0) | (classes != np.floor(classes)) | (classes >= _MOST_CLASSES)
    if bad.any():
        raise EdgeError(
            f"label {config.label_key!r}: the value {classes[bad][0]} is no class; class_weights 'balanced' expects integers from 0 to "
            f"{_MOST_CLASSES - 1}, or one-hot labels; leave class_weights out for a regression"
        )
