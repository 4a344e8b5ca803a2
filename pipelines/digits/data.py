"""Scikit-learn's digits as tf.Examples: 1,797 grey images of 8 x 8 pixels, 0 to 16 each, and what digit they show."""

from pathlib import Path

from tfx_edge.pipelines.example_files import split_rows, write_splits


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
