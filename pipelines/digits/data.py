"""Scikit-learn's digits as tf.Examples: 1,797 grey images of 8 x 8 pixels, 0 to 16 each, and what digit they show."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfx_edge.pipelines.example_files import split_rows, write_splits

if TYPE_CHECKING:
    from numpy.typing import NDArray


def write_examples(folder: Path, seed: int = 0) -> None:
    """Writes `train/` and `eval/` below a folder, once: a folder that is there is left as it is.

    Each tf.Example has `image`, 64 floats, and `label`, an int64. Both splits hold each digit in the same share.

    Args:
        folder: appears whole or not at all.
        seed: of the split.
    """
    if folder.exists():
        return
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rows = [{"image": image, "label": int(label)} for image, label in zip(images, labels, strict=True)]
    write_splits(folder, split_rows(rows, "label", seed))


def read_transformed(examples: str, count: int, split: str = "eval") -> tuple["NDArray[Any]", list[int]]:
    """Reads some of the digits as Transform wrote them.

    Args:
        examples: URI of Transform's output `transformed_examples`.
        count: how many.
        split: which of its splits.

    Returns:
        Images, `[count, 8, 8, 1]` float32 from 0 to 1, and the digits that they show.
    """
    import numpy as np
    import tensorflow as tf

    files = sorted(tf.io.gfile.glob(f"{examples}/Split-{split}/*"))
    images, labels = [], []
    for record in tf.data.TFRecordDataset(files, "GZIP").take(count).as_numpy_iterator():
        features = tf.train.Example.FromString(record).features.feature
        images.append(features["image"].float_list.value)
        labels.append(int(features["label"].int64_list.value[0]))
    return np.array(images, np.float32).reshape(-1, 8, 8, 1), labels
