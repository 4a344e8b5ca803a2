"""Data while training: augmentation, and what is kept in memory."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.fine_tuning import fine_tune
from tfx_edge.optimize.fine_tuning.augmentation import augment
from tfx_edge.optimize.fine_tuning.order import in_memory
from tfx_edge.schemas import EdgeError, FineTuningConfig, ImageAugmentation, SignalAugmentation, TextAugmentation

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.uniform(0.2, 0.8, size=(64, 6, 6, 3)).astype(np.float32)
TOKENS = np.where(np.arange(12) < RANDOM.integers(4, 12, size=(400, 1)), RANDOM.integers(1, 90, size=(400, 12)), 0)
SIGNALS = RANDOM.normal(size=(64, 20, 2)).astype(np.float32)


def config(*augmentation, **settings):
    return FineTuningConfig(**{"label_key": "y", "augmentation": augmentation, **settings})


def passes(values, *augmentation, seed=0, count=1, name="f"):
    data = tf.data.Dataset.from_tensor_slices(({name: values, "other": np.arange(len(values))}, np.arange(len(values)))).batch(50)
    changed = augment(data, config(*augmentation), seed)
    results = []
    for _ in range(count):
        batches = list(changed)
        for key in ("other",):
            np.testing.assert_array_equal(np.concatenate([b[0][key] for b in batches]), np.arange(len(values)))
        np.testing.assert_array_equal(np.concatenate([b[1] for b in batches]), np.arange(len(values)))
        results.append(np.concatenate([b[0][name] for b in batches]))
    return results if count > 1 else results[0]


@pytest.mark.parametrize(
    ("values", "augmentation"),
    [
        (IMAGES, ImageAugmentation(feature="f", flip="horizontal", rotate=20, crop=0.2, zoom=0.2, brightness=0.2)),
        (TOKENS, TextAugmentation(feature="f", dropout=0.3, swap=0.3)),
        (SIGNALS, SignalAugmentation(feature="f", noise=0.1, shift=3)),
    ],
)
def test_each_epoch_draws_anew_and_a_seed_repeats(values, augmentation):
    first, second = passes(values, augmentation, count=2)
    again = passes(values, augmentation, count=2)
    np.testing.assert_array_equal(first, again[0])
    np.testing.assert_array_equal(second, again[1])
    assert np.any(first != second) and np.any(first != passes(values, augmentation, seed=1))
    assert first.dtype == values.dtype and first.shape == values.shape


def test_a_flip_is_the_image_or_its_mirror_image():
    got = passes(IMAGES, ImageAugmentation(feature="f", flip="horizontal"))
    mirrored = [np.array_equal(g, i[:, ::-1]) for g, i in zip(got, IMAGES, strict=True)]
    assert all(m or np.array_equal(g, i) for m, g, i in zip(mirrored, got, IMAGES, strict=True))
    assert 10 < sum(mirrored) < 54


def test_a_crop_shifts_the_frame_no_further_than_allowed():
    image = np.zeros((50, 11, 11), np.float32)
    image[:, 5, 5] = 1
    got = passes(image, ImageAugmentation(feature="f", crop=0.2))  # 2.2 pixels
    mass = got.sum((1, 2))
    centre = np.stack([(got * np.arange(11)[:, None]).sum((1, 2)) / mass, (got * np.arange(11)).sum((1, 2)) / mass], 1) - 5
    np.testing.assert_allclose(mass, 1, atol=1e-4)
    assert 1.0 < np.abs(centre).max() <= 2.2 + 1e-4


def test_rotation_and_zoom_turn_and_scale_around_the_centre():
    y, x = np.mgrid[-10:11, -10:11]
    blob = np.exp(-((x - 5) ** 2 + y**2) / 8.0).astype(np.float32)[None].repeat(40, 0)

    def moments(images):
        total = images.sum((1, 2))
        cx, cy = (images * x).sum((1, 2)) / total, (images * y).sum((1, 2)) / total
        return np.degrees(np.arctan2(cy, cx)), np.hypot(cx, cy)

    angle, radius = moments(passes(blob, ImageAugmentation(feature="f", rotate=30)))
    assert 20 < np.abs(angle).max() <= 30.5 and np.allclose(radius, 5, atol=0.3)
    angle, radius = moments(passes(blob, ImageAugmentation(feature="f", zoom=0.2)))
    assert radius.min() < 4.6 and radius.max() > 5.4 and np.all((radius > 3.8) & (radius < 6.5)) and np.abs(angle).max() < 15


def test_brightness_moves_whole_images_within_the_range_of_values():
    whole = (IMAGES * 255).astype(np.uint8)
    got = passes(whole, ImageAugmentation(feature="f", brightness=0.5, value_range=(0, 255)))
    assert got.dtype == np.uint8
    difference = got.astype(int) - whole
    inside = (got > 0) & (got < 255)
    spread = [np.ptp(d[i]) for d, i in zip(difference, inside, strict=True) if i.any()]
    assert max(spread) <= 1 and 60 < np.abs(difference).max() <= 128


def test_dropped_tokens_are_replaced_at_their_rate_and_padding_stays():
    got = passes(TOKENS, TextAugmentation(feature="f", dropout=0.25, replacement=99))
    real = TOKENS != 0
    np.testing.assert_array_equal(got[~real], 0)
    assert set(np.unique(got[real] == TOKENS[real])) == {False, True} and np.all((got == TOKENS) | (got == 99))
    assert (got == 99)[real].mean() == pytest.approx(0.25, abs=0.04)


def test_swapped_tokens_are_the_same_tokens_one_place_away():
    got = passes(TOKENS, TextAugmentation(feature="f", swap=0.5))
    np.testing.assert_array_equal(np.sort(got, axis=1), np.sort(TOKENS, axis=1))
    np.testing.assert_array_equal(got == 0, TOKENS == 0)
    padded = np.pad(TOKENS, ((0, 0), (1, 1)), constant_values=-1)
    assert np.all((got == TOKENS) | (got == padded[:, :-2]) | (got == padded[:, 2:]))
    pairs = (TOKENS != 0).sum() / 2
    assert (got != TOKENS).sum() / 2 == pytest.approx(0.5 * 0.9 * pairs, rel=0.2)  # one token in ten or so has no partner


def test_a_shift_moves_a_signal_in_time_and_repeats_its_edge():
    got = passes(SIGNALS, SignalAugmentation(feature="f", shift=3))

    def shifted(signal, by):
        return signal[np.clip(np.arange(20) - by, 0, 19)]

    found = [[by for by in range(-3, 4) if np.array_equal(g, shifted(s, by))] for g, s in zip(got, SIGNALS, strict=True)]
    assert all(found) and {by for f in found for by in f} == set(range(-3, 4))


def test_noise_is_normal_with_the_given_deviation():
    difference = passes(SIGNALS, SignalAugmentation(feature="f", noise=0.3)) - SIGNALS
    assert difference.std() == pytest.approx(0.3, rel=0.05) and abs(difference.mean()) < 0.02


@pytest.mark.parametrize(
    ("augmentation", "text"),
    [
        (ImageAugmentation(feature="g", zoom=0.1), "no such feature; there are 'f', 'other'"),
        (ImageAugmentation(feature="f", zoom=0.1), r"float32 of shape \(20,\).*kind 'image' takes"),
        (TextAugmentation(feature="f", swap=0.1), "kind 'text' takes integers"),
        (SignalAugmentation(feature="other", noise=0.1), "int64.*kind 'signal' takes floats"),
    ],
)
def test_a_feature_that_an_augmentation_isnt_for_is_named(augmentation, text):
    with pytest.raises(EdgeError, match=text):
        passes(SIGNALS[..., 0], augmentation)


def test_validation_examples_are_not_augmented():
    model = tf_keras.Model(inputs := layers.Input((20, 2), name="f"), layers.Dense(1)(layers.Flatten()(inputs)))
    data = tf.data.Dataset.from_tensor_slices(({"f": SIGNALS}, SIGNALS[:, 0, 0]))
    loud = config(SignalAugmentation(feature="f", noise=50.0), epochs=1, learning_rate=1e-9, loss="mean_squared_error")
    history = fine_tune(model, data, loud, validation=data).history
    assert history["loss"][0] > 50 * history["val_loss"][0]
    assert history["val_loss"][0] == pytest.approx(np.mean((model(SIGNALS).numpy()[:, 0] - SIGNALS[:, 0, 0]) ** 2), rel=1e-3)


def counted():
    """Examples that count how often they are read to their end."""
    reads = []

    def read():
        for signal in SIGNALS:
            yield {"f": signal}, signal[0, 0]
        reads.append(1)  # to the end: a look at the first example is no pass

    spec = ({"f": tf.TensorSpec((20, 2))}, tf.TensorSpec(()))
    return tf.data.Dataset.from_generator(read, output_signature=spec), reads


@pytest.mark.parametrize(("memory_mb", "expected"), [(1.0, 1 + 1), (0.001, 1 + 4), (None, 4)])
def test_examples_are_read_once_if_they_fit_and_each_epoch_if_not(memory_mb, expected):
    model = tf_keras.Model(inputs := layers.Input((20, 2), name="f"), layers.Dense(1)(layers.Flatten()(inputs)))
    data, reads = counted()
    fine_tune(model, data, config(epochs=4, memory_mb=memory_mb, loss="mean_squared_error"))
    assert len(reads) == expected  # with a bound once more, to measure


def test_a_bound_on_memory_cuts_the_shuffle_buffer():
    data = tf.data.Dataset.from_tensor_slices(({"f": SIGNALS}, SIGNALS[:, 0, 0]))  # 164 bytes an example
    assert in_memory(data, config(memory_mb=1640 / 2**20))[1] == 10
    assert in_memory(data, config(memory_mb=1640 / 2**20, shuffle_buffer=4))[1] == 4
    texts = tf.data.Dataset.from_tensor_slices(({"f": np.array(["ab" * 50] * 30)}, np.zeros(30, np.int64)))
    assert in_memory(texts, config(memory_mb=1080 / 2**20))[1] == 10
