"""Rows of an example data set as tf.Examples in files, a folder for each split."""

import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

EVAL_SHARE = 1 / 3
SPLITS = ("train", "eval")

Row = Mapping[str, Any]  # a number, bytes, or a sequence of them a feature; None or an empty sequence: a missing value


def split_rows(rows: Sequence[Row], label: str, seed: int = 0) -> dict[str, list[Row]]:
    """Deals rows out to `train` and `eval`, such that both hold each label in the same share."""
    from sklearn.model_selection import train_test_split

    parts = train_test_split(rows, test_size=EVAL_SHARE, stratify=[row[label] for row in rows], random_state=seed)
    return dict(zip(SPLITS, parts, strict=True))


def write_splits(folder: Path, splits: Mapping[str, Iterable[Row]]) -> None:
    """Writes `<split>/data.tfrecord` for each split.

    Args:
        folder: appears whole or not at all; one that is there is left as it is.
        splits: the rows of each split. Integers become int64 lists, floats float lists, bytes byte lists.
    """
    if folder.exists():
        return
    import tensorflow as tf

    part = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}.part")
    try:
        for split, rows in splits.items():
            (part / split).mkdir(parents=True)
            with tf.io.TFRecordWriter(str(part / split / "data.tfrecord")) as writer:
                for row in rows:
                    writer.write(serialize(row))
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def serialize(row: Row) -> bytes:
    """A row as a serialized tf.Example, without its missing values."""
    import tensorflow as tf

    feature = {name: _feature(value) for name, value in row.items() if value is not None}
    serialized: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    return serialized


def _feature(value: Any) -> Any:
    import tensorflow as tf

    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    values = np.ravel(value)
    if values.dtype.kind in "iub":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values.tolist()))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values.tolist()))
