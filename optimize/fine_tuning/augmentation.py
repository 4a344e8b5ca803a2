"""Random changes to batches of features: images by Keras' preprocessing layers, tokens and signals by a few lines."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tf_keras import layers

from tfx_edge.schemas import EdgeError, FineTuningConfig
from tfx_edge.schemas.augmentation import Augmentation, ImageAugmentation, SignalAugmentation, TextAugmentation

Change = Callable[[tf.Tensor], tf.Tensor]


def augment(batches: tf.data.Dataset, config: FineTuningConfig, seed: int) -> tf.data.Dataset:
    """Changes features at random, other ones in each epoch, the same for the same seed.

    Args:
        batches: of (features by name, label); each feature keeps its shape and type.
        config: which changes.
        seed: of all that is drawn.

    Raises:
        EdgeError: a feature isn't there, or isn't of a kind that the change is for.
    """
    if not config.augmentation:
        return batches
    features = batches.element_spec[0]
    changes = [(a.feature, _change(a, features.get(a.feature), sorted(features), seed + i)) for i, a in enumerate(config.augmentation)]

    def change(features: dict[str, tf.Tensor], label: Any) -> tuple[dict[str, tf.Tensor], Any]:
        changed = dict(features)
        for name, function in changes:
            changed[name] = tf.ensure_shape(function(changed[name]), changed[name].shape)
        return changed, label

    return batches.map(change)  # one at a time: drawing in parallel would not repeat


def _change(augmentation: Augmentation, spec: Any, names: Sequence[str], seed: int) -> Change:
    what = f"augmentation of feature {augmentation.feature!r}"
    if spec is None:
        raise EdgeError(f"{what}: there is no such feature; there are {', '.join(map(repr, names))}")
    dense = isinstance(spec, tf.TensorSpec)
    about = f"it is {spec.dtype.name} of shape {tuple(spec.shape[1:])} an example" if dense else f"it is {spec!r:.100}"
    number = dense and (spec.dtype.is_floating or spec.dtype.is_integer)
    rank = len(spec.shape) - 1 if number and spec.shape.rank is not None else -1
    if isinstance(augmentation, ImageAugmentation):
        if rank not in (2, 3) or not spec.shape[1:].is_fully_defined():
            raise EdgeError(f"{what}: {about}; kind 'image' takes numbers of a fixed shape [height, width] or [height, width, channels]")
        return _image(augmentation, spec, seed)
    if isinstance(augmentation, TextAugmentation):
        if rank != 1 or not spec.dtype.is_integer:
            raise EdgeError(f"{what}: {about}; kind 'text' takes integers of shape [length]")
        return _text(augmentation, seed)
    if rank not in (1, 2) or not spec.dtype.is_floating:
        raise EdgeError(f"{what}: {about}; kind 'signal' takes floats of shape [steps] or [steps, channels]")
    return _signal(augmentation, seed)


def _image(config: ImageAugmentation, spec: tf.TensorSpec, seed: int) -> Change:
    filled = {"fill_mode": "constant", "fill_value": 0.0}
    made: list[layers.Layer] = []
    if config.flip:
        made.append(layers.RandomFlip(config.flip, seed=seed))
    if config.rotate:
        made.append(layers.RandomRotation(config.rotate / 360, seed=seed, **filled))
    if config.crop:
        made.append(layers.RandomTranslation(config.crop, config.crop, seed=seed, **filled))
    if config.zoom:
        made.append(layers.RandomZoom((-config.zoom, config.zoom), seed=seed, **filled))
    if config.brightness:
        made.append(layers.RandomBrightness(config.brightness, value_range=config.value_range, seed=seed))
    shape = spec.shape[1:] if spec.shape.rank == 4 else [*spec.shape[1:], 1]

    def change(values: tf.Tensor) -> tf.Tensor:
        images = tf.reshape(tf.cast(values, tf.float32), [-1, *shape])
        for layer in made:
            images = layer(images, training=True)
        images = tf.reshape(images, tf.shape(values))
        return tf.cast(tf.round(images) if spec.dtype.is_integer else images, spec.dtype)

    change(tf.zeros([1, *spec.shape[1:]], spec.dtype))  # the layers make their generators on the first call, which no map may do
    return change


def _text(config: TextAugmentation, seed: int) -> Change:
    random = tf.random.Generator.from_seed(seed)

    def change(tokens: tf.Tensor) -> tf.Tensor:
        if config.swap:
            tokens = _swapped(tokens, config, random)
        if config.dropout:
            drop = (random.uniform(tf.shape(tokens)) < config.dropout) & (tokens != config.padding)
            tokens = tf.where(drop, tf.cast(config.replacement, tokens.dtype), tokens)
        return tokens

    return change


def _swapped(tokens: tf.Tensor, config: TextAugmentation, random: tf.random.Generator) -> tf.Tensor:
    """Pairs of neighbours, beginning with the first or the second token of each text, change places."""
    count, length = tf.unstack(tf.shape(tokens))
    places = tf.tile(tf.range(length)[None], [count, 1])
    first = random.uniform([count, 1], maxval=2, dtype=tf.int32)
    odd = (places - first) % 2  # 1 for the second of a pair; the token before the first pair has no partner
    partner = tf.where(odd == 1, places - 1, places + 1)
    inside = (places >= first) & (partner < length)
    partner = tf.where(inside, partner, places)
    coin = random.uniform(tf.shape(tokens)) < config.swap
    chosen = tf.gather(coin, tf.minimum(places, partner), batch_dims=1)
    real = (tokens != config.padding) & (tf.gather(tokens, partner, batch_dims=1) != config.padding)
    return tf.gather(tokens, tf.where(chosen & real, partner, places), batch_dims=1)


def _signal(config: SignalAugmentation, seed: int) -> Change:
    random = tf.random.Generator.from_seed(seed)

    def change(values: tf.Tensor) -> tf.Tensor:
        if config.shift:
            count, steps = tf.shape(values)[0], tf.shape(values)[1]
            shift = random.uniform([count, 1], -config.shift, config.shift + 1, tf.int32)
            values = tf.gather(values, tf.clip_by_value(tf.range(steps)[None] - shift, 0, steps - 1), batch_dims=1)
        if config.noise:
            values += random.normal(tf.shape(values), stddev=config.noise, dtype=values.dtype)
        return values

    return change
