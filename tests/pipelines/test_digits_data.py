from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits

from tfx_edge.pipelines.digits.data import write_examples


def read(folder: Path, split: str) -> list[tuple[tuple[float, ...], int]]:
    examples = []
    for record in tf.data.TFRecordDataset(str(folder / split / "data.tfrecord")).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        examples.append((tuple(feature["image"].float_list.value), feature["label"].int64_list.value[0]))
    return examples


def test_every_digit_is_in_exactly_one_split_and_both_hold_each_in_the_same_share(tmp_path: Path) -> None:
    write_examples(tmp_path / "data")
    train, evaluation = read(tmp_path / "data", "train"), read(tmp_path / "data", "eval")
    images, labels = load_digits(return_X_y=True)
    assert sorted(train + evaluation) == sorted((tuple(image), int(label)) for image, label in zip(images, labels, strict=True))
    for digit in range(10):
        share = sum(label == digit for _, label in evaluation) / np.count_nonzero(labels == digit)
        assert share == pytest.approx(1 / 3, abs=0.01)


def test_data_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write_examples(tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_write_that_breaks_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(tf.io.TFRecordWriter, "write", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_examples(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []
