"""Scikit-learn's digits as tf.Examples: 1,797 grey images of 8 x 8 pixels, 0 to 16 each, and what digit they show."""

import shutil
import uuid
from pathlib import Path

EVAL_SHARE = 1 / 3
SPLITS = ("train", "eval")


def write_examples(folder: Path, seed: int = 0) -> None:
    """Writes `train/` and `eval/` below a folder, once: a folder that is there is left as it is.

    Each tf.Example has `image`, 64 floats, and `label`, an int64. Both splits hold each digit in the same share.

    Args:
        folder: appears whole or not at all.
        seed: of the split.
    """
    if folder.exists():
        return
    import tensorflow as tf
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    indices = train_test_split(range(len(labels)), test_size=EVAL_SHARE, stratify=labels, random_state=seed)
    part = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}.part")
    try:
        for split, rows in zip(SPLITS, indices, strict=True):
            (part / split).mkdir(parents=True)
            with tf.io.TFRecordWriter(str(part / split / "digits.tfrecord")) as writer:
                for row in rows:
                    feature = {
                        "image": tf.train.Feature(float_list=tf.train.FloatList(value=images[row])),
                        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(labels[row])])),
                    }
                    writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
