"""One training from its config: data, optimizer, loss, phases, and what watches over it."""

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TypeAlias

import tensorflow as tf
import tf_keras
from absl import logging

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.fine_tuning.augmentation import augment
from tfx_edge.optimize.fine_tuning.batches import as_inputs, check_elements
from tfx_edge.optimize.fine_tuning.checkpoint import Checkpoint, TrainingHistory, whose_training
from tfx_edge.optimize.fine_tuning.class_weights import class_weights
from tfx_edge.optimize.fine_tuning.data_checks import check_examples, check_label_values, check_loss
from tfx_edge.optimize.fine_tuning.layer_settings import has_random_layers, training_settings
from tfx_edge.optimize.fine_tuning.losses import training_loss
from tfx_edge.optimize.fine_tuning.moving_statistics import recalibrate
from tfx_edge.optimize.fine_tuning.optimizers import make_optimizer, needs_steps
from tfx_edge.optimize.fine_tuning.order import hold_out, in_memory
from tfx_edge.optimize.fine_tuning.progress import ProgressBar
from tfx_edge.optimize.fine_tuning.steps import count_examples, phase_epochs, steps_of
from tfx_edge.optimize.fine_tuning.stopping import StopAtInvalidLoss, StopEarly
from tfx_edge.optimize.model_copy import compile_arguments
from tfx_edge.schemas import EdgeError, FineTuningConfig

Callback: TypeAlias = tf_keras.callbacks.Callback


def fine_tune(
    model: tf_keras.Model,
    dataset: tf.data.Dataset,
    config: FineTuningConfig,
    *,
    compiled_like: tf_keras.Model | None = None,
    callbacks: Sequence[Callback] = (),
    validation: tf.data.Dataset | None = None,
) -> tf_keras.callbacks.History:
    """Trains a model in place, as `Model.fit` does; copy it first where the original is still needed.

    The same model, data, config and machine give the same weights. For that the global seeds of Python, NumPy and
    TensorFlow are set to `config.seed`.

    Args:
        model: its inputs are named as the features; with several outputs the config has `output_losses`.
        dataset: one pass over the examples, one at a time: `(features, label)`, features a dict of dense tensors by name, scalars
            where the model takes `[batch, 1]`, the label a tensor, or for several outputs a dict of them by the outputs' names. It
            may hold more features than the model takes.
        config: how to train; `config.label_key` only names the label in errors.
        compiled_like: the model whose loss and metrics to use; by default the model itself.
        callbacks: Keras callbacks of a technique.
        validation: examples that aren't trained on, as `dataset`; the history has their loss and metrics then. Without it early
            stopping holds some of `dataset` out.

    Returns:
        Keras' history: loss and metrics by epoch; those before a kill too where training went on after one.

    Raises:
        EdgeError: before training, if no loss is known, the features or the label don't fit the model, or a setting reaches no
            layer; during it, if the loss becomes NaN or infinite, or TensorFlow refuses the data.
    """
    tf_keras.utils.set_random_seed(config.seed)
    check_elements(model, dataset, config)
    if validation is not None:
        check_elements(model, validation, config, "validation")
    source = compiled_like or model
    loss = training_loss(source, config)
    check_loss(model, dataset.element_spec[1], loss, config)
    _check_split(config, validation)
    training, validation = hold_out(dataset, config, validation)
    check_examples(training, validation, config)
    check_label_values(model, training, loss, config)
    _make_folders(config)
    steps = steps_of(count_examples(training, config), config) if needs_steps(config) else 0
    model.compile(**{**compile_arguments(source), "optimizer": make_optimizer(config, steps), "loss": loss})
    weights = class_weights(training, config)
    try:
        with training_settings(model, config) as reached:
            for name, layers in vars(reached).items():
                if layers:
                    logging.info("%s of model %s while training: %s.", name, model.name, ", ".join(layers))
            history = _fit(model, training, validation, config, callbacks, weights)
        if config.batch_normalization is not None and config.batch_normalization.recalibrate:
            recalibrate(model, as_inputs(model, training.batch(config.batch_size)), config.batch_normalization.batches)
    except (tf.errors.OpError, ValueError, TypeError) as error:
        fault = one_line(error).split("  Label values")[0]  # TensorFlow lists a whole batch of labels
        raise EdgeError(
            f"fine-tuning model {model.name!r} failed: {fault}; expected features and a label {config.label_key!r} that fit "
            "its inputs and loss"
        ) from error
    return history


def _check_split(config: FineTuningConfig, validation: tf.data.Dataset | None) -> None:
    stopping = config.early_stopping
    if stopping is not None and stopping.split is not None and validation is None:
        raise EdgeError(
            f"EarlyStopping.split {stopping.split!r} names a split, but there are no validation examples; pass validation=, "
            "or leave split out, for which some training examples are held out"
        )


def _make_folders(config: FineTuningConfig) -> None:
    for field in ("checkpoint_dir", "tensorboard_dir"):
        folder = getattr(config, field)
        if folder is None:
            continue
        probe = f"{folder.rstrip('/')}/.writable-{uuid.uuid4().hex}"
        try:
            tf.io.gfile.makedirs(folder)
            with tf.io.gfile.GFile(probe, "w") as file:
                file.write("")
            tf.io.gfile.remove(probe)
        except tf.errors.OpError as error:
            raise EdgeError(f"FineTuningConfig.{field} {folder!r}: can't be written to ({one_line(error)}); name another") from error


def _fit(
    model: tf_keras.Model,
    training: tf.data.Dataset,
    validation: tf.data.Dataset | None,
    config: FineTuningConfig,
    callbacks: Sequence[Callback],
    weights: dict[int, float] | None,
) -> TrainingHistory:
    """Runs the phases, one `Model.fit` each, from the start or from where a killed training was."""
    history = TrainingHistory()
    stopping = StopEarly(config.early_stopping, config.epochs) if config.early_stopping else None
    watching: list[Callback] = [StopAtInvalidLoss(config), *callbacks, history]
    if stopping is not None:
        watching.append(stopping)
    if config.tensorboard_dir is not None:
        watching.append(tf_keras.callbacks.TensorBoard(config.tensorboard_dir, write_graph=False))
    kept, buffer = in_memory(training, config)
    with ExitStack() as stack:
        if config.progress:
            bar = ProgressBar(config.epochs, f"fine-tuning {model.name}")
            watching.append(bar)
            bar.start()
            stack.callback(bar.stop)
        checkpoint = (
            Checkpoint(config.checkpoint_dir, model, config, history, stopping, whose_training(training, callbacks))
            if config.checkpoint_dir
            else None
        )
        done = 0
        if checkpoint is not None:
            watching.append(checkpoint)  # the last, so that it saves what the others did
            done = checkpoint.restore()
        for phase in phase_epochs(config):
            if done >= phase.stop:
                continue
            seed = config.seed + phase.start
            if checkpoint is not None and has_random_layers(model):
                tf_keras.utils.set_random_seed(seed)
                model._reset_compile_cache()  # what dropout draws is a state of the traced function, which no checkpoint holds
            examples = kept.shuffle(buffer, seed=seed).batch(phase.batch_size)  # in another order each epoch
            batches = as_inputs(model, augment(examples, config, seed))
            model.fit(
                batches.prefetch(tf.data.AUTOTUNE if config.prefetch is None else config.prefetch),
                initial_epoch=phase.start,
                epochs=phase.stop,
                validation_data=None if validation is None else as_inputs(model, validation.batch(phase.batch_size)),
                class_weight=weights,
                verbose=0,
                callbacks=watching,
            )
            if model.stop_training:
                break
        if stopping is not None:
            stopping.model = model
            stopping.restore()
        if checkpoint is not None:
            checkpoint.finish()
    return history
