"""What the example pipelines' run_fns have in common, after the way of TFX's own examples."""

from typing import TYPE_CHECKING, Any

from tfx_edge.pipelines.saving import save_model

if TYPE_CHECKING:
    import tensorflow as tf
    import tf_keras


def train_and_save(model: "tf_keras.Model", fn_args: Any, label_key: str, *, epochs: int, batch_size: int = 32) -> None:
    """Trains a compiled model on the Trainer's splits and saves it.

    Args:
        model: Keras 2, inputs named as the transformed features.
        fn_args: what TFX hands to run_fn; `custom_config["epochs"]` overrides `epochs`.
        label_key: the label, raw and transformed.
        epochs: passes over the train split.
        batch_size: examples a step.
    """
    import tensorflow_transform as tft

    transform = tft.TFTransformOutput(fn_args.transform_output)
    train = _examples(fn_args.train_files, fn_args, transform, label_key, batch_size)
    evaluation = _examples(fn_args.eval_files, fn_args, transform, label_key, batch_size)
    epochs = (fn_args.custom_config or {}).get("epochs", epochs)
    model.fit(train, validation_data=evaluation, epochs=epochs, verbose=2)
    save_model(model, fn_args, label_key=label_key)


def _examples(files: list[str], fn_args: Any, transform: Any, label_key: str, batch_size: int) -> "tf.data.Dataset":
    """One pass over batches of (features, label), shuffled."""
    from tfx_bsl.public.tfxio import TensorFlowDatasetOptions

    options = TensorFlowDatasetOptions(batch_size=batch_size, label_key=label_key, num_epochs=1, shuffle=True, shuffle_seed=0)
    return fn_args.data_accessor.tf_dataset_factory(files, options, transform.transformed_metadata.schema)
