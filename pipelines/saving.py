"""Saving a trained model in a Trainer's run_fn in the form with which every component of the suite works."""

import sys
from typing import TYPE_CHECKING, Any

from tfx_edge.schemas import EdgeError

if TYPE_CHECKING:
    import tf_keras


def save_model(model: "tf_keras.Model", fn_args: Any, label_key: str | None = None) -> None:
    """Writes a Keras 2 SavedModel that serves serialized tf.Examples through Transform's layer.

    The signature `serving_default` takes `examples`, a vector of serialized raw tf.Examples.

    Args:
        model: a functional Keras 2 model whose inputs are named as transformed features; `[n, 1]` for a scalar feature. A Keras 3
            model is converted where its layers have Keras 2 twins.
        fn_args: what TFX hands to run_fn; `transform_output` and `serving_model_dir` are read.
        label_key: the raw feature that is the label, which examples to be served don't have.

    Raises:
        EdgeError: the model isn't Keras 2 and can't be converted, or takes an input that isn't a transformed feature.
    """
    import tensorflow as tf
    import tensorflow_transform as tft
    import tf_keras

    keras3 = sys.modules.get("keras")
    if keras3 is not None and not isinstance(model, tf_keras.Model) and isinstance(model, keras3.Model):
        from tfx_edge.optimize.float_model import to_keras2

        model = to_keras2(model)
    if not isinstance(model, tf_keras.Model):
        raise EdgeError(
            f"save_model: got {type(model).__module__}.{type(model).__name__}, expected a tf_keras.Model; build it with tf_keras"
        )
    transform = tft.TFTransformOutput(fn_args.transform_output)
    unknown = set(model.input_names) - set(transform.transformed_feature_spec())
    if unknown:
        have = ", ".join(sorted(transform.transformed_feature_spec()))
        raise EdgeError(f"save_model: inputs {', '.join(sorted(unknown))} are no transformed features ({have}); name the inputs as these")
    model.tft_layer = transform.transform_features_layer()
    raw_spec = {k: v for k, v in transform.raw_feature_spec().items() if k != label_key}
    shapes = {name: tensor.shape[1:] for name, tensor in zip(model.input_names, model.inputs, strict=True)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        features = model.tft_layer(tf.io.parse_example(examples, raw_spec))
        inputs = [tf.reshape(features[name], [-1, *shape]) for name, shape in shapes.items()]
        outputs = tf.nest.flatten(model(inputs if len(inputs) > 1 else inputs[0], training=False))
        return dict(zip(model.output_names, outputs, strict=True))

    model.save(fn_args.serving_model_dir, save_format="tf", signatures={"serving_default": serve})
