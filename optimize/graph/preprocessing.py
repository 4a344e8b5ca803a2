"""Layers made of operators that LiteRT has, in place of Keras preprocessing layers. They have no weights; all is in the config."""

from typing import Any, Literal

import tensorflow as tf
import tf_keras

_PACKAGE = "tfx_edge"

Numbers = Any  # nested lists of floats


@tf_keras.saving.register_keras_serializable(_PACKAGE)
class Affine(tf_keras.layers.Layer):
    """`(x - shift) * scale + offset`, each a constant that broadcasts to the input or None.

    The shift comes first as in Keras's Normalization: multiplied out, a mean far from zero would cost digits.

    >>> Affine(shift=[1.0], scale=[2.0])(tf.constant([[3.0]])).numpy()
    array([[4.]], dtype=float32)
    """

    def __init__(self, shift: Numbers = None, scale: Numbers = None, offset: Numbers = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.shift, self.scale, self.offset = shift, scale, offset

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Takes any number type; the result is of the layer's."""
        x = tf.cast(inputs, self.compute_dtype)
        if self.shift is not None:
            x -= tf.constant(self.shift, x.dtype)
        if self.scale is not None:
            x *= tf.constant(self.scale, x.dtype)
        if self.offset is not None:
            x += tf.constant(self.offset, x.dtype)
        return x

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "shift": self.shift, "scale": self.scale, "offset": self.offset}


@tf_keras.saving.register_keras_serializable(_PACKAGE)
class CategoryCounts(tf_keras.layers.Layer):
    """Encodes integers below `tokens` as Keras's CategoryEncoding does, by comparing instead of counting bins.

    A value outside of `[0, tokens)` counts as none, where Keras's layer stops the program.

    >>> CategoryCounts(3, "multi_hot")(tf.constant([[0, 2, 2]])).numpy()
    array([[1., 0., 1.]], dtype=float32)
    """

    def __init__(self, tokens: int, mode: Literal["one_hot", "multi_hot", "count"], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tokens, self.mode = tokens, mode

    def call(self, inputs: tf.Tensor, count_weights: tf.Tensor | None = None) -> tf.Tensor:
        """Integers `[n]`, `[n, 1]`, or but for one_hot `[n, k]`, to `[n, tokens]`."""
        ids = tf.cast(inputs, tf.int32)
        if ids.shape.rank == 1:
            # Keras takes a vector for the values of one example, but for one_hot for those of many.
            ids = ids[:, tf.newaxis] if self.mode == "one_hot" else ids[tf.newaxis]
        encoded = tf.one_hot(ids, self.tokens, dtype=self.compute_dtype)
        if self.mode == "one_hot":
            return tf.squeeze(encoded, axis=-2)
        if self.mode == "multi_hot":
            return tf.reduce_max(encoded, axis=-2)
        if count_weights is not None:
            encoded *= tf.cast(count_weights, encoded.dtype)[..., tf.newaxis]
        return tf.reduce_sum(encoded, axis=-2)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "tokens": self.tokens, "mode": self.mode}


@tf_keras.saving.register_keras_serializable(_PACKAGE)
class Buckets(tf_keras.layers.Layer):
    """The number of boundaries at or below each value, as Keras's Discretization gives it.

    >>> Buckets([0.0, 1.0])(tf.constant([[-1.0, 0.0, 5.0]])).numpy()
    array([[0, 1, 2]], dtype=int32)
    """

    def __init__(self, boundaries: list[float], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.boundaries = list(boundaries)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Numbers of any shape to int32 of the same."""
        x = tf.cast(inputs, tf.float32)[..., tf.newaxis]
        return tf.reduce_sum(tf.cast(x >= tf.constant(self.boundaries, tf.float32), tf.int32), axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "boundaries": list(self.boundaries)}


@tf_keras.saving.register_keras_serializable(_PACKAGE)
class Vocabulary(tf_keras.layers.Layer):
    """The index of each integer in a vocabulary, as Keras's IntegerLookup gives it: `first` for the first token, `unknown` for none.

    >>> Vocabulary([30, 40], first=1, unknown=0)(tf.constant([[40, 7]])).numpy()
    array([[2, 0]], dtype=int32)
    """

    def __init__(self, tokens: list[int], first: int, unknown: int, mask: tuple[int, int] | None = None, **kwargs: Any) -> None:
        """Takes the vocabulary.

        Args:
            tokens: of up to 32 bits.
            first: index of the first token.
            unknown: index of a value that is no token.
            mask: a value that stands for nothing, and its index: 0, or -1, which `CategoryCounts` counts as none.
            kwargs: of every layer.
        """
        super().__init__(**kwargs)
        self.tokens, self.first, self.unknown, self.mask = list(tokens), first, unknown, mask

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Integers of any shape to int32 of the same."""
        x = inputs if inputs.dtype.is_integer else tf.cast(inputs, tf.int64)  # 64 bits cut to 32 could meet a token
        above = tf.range(self.first - self.unknown, self.first - self.unknown + len(self.tokens))
        found = tf.cast(tf.equal(x[..., tf.newaxis], tf.constant(self.tokens, x.dtype)), tf.int32)
        index = self.unknown + tf.reduce_sum(found * above, axis=-1)
        if self.mask is None:
            return index
        masked = tf.cast(tf.equal(x, self.mask[0]), tf.int32)
        return index * (1 - masked) + self.mask[1] * masked

    def get_config(self) -> dict[str, Any]:
        mask = list(self.mask) if self.mask else None
        return {**super().get_config(), "tokens": list(self.tokens), "first": self.first, "unknown": self.unknown, "mask": mask}
