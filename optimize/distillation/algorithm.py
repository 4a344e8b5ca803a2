"""Make a student, teach it, report."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.distillation.loss import outputs_of
from tfx_edge.optimize.distillation.student import scaled_student
from tfx_edge.optimize.distillation.student_check import check_activation, check_learns, check_own_layers
from tfx_edge.optimize.distillation.teaching import check_student, teach
from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.fine_tuning import fine_tune, input_batches, training_loss
from tfx_edge.optimize.finite import check_trained
from tfx_edge.optimize.half_precision import check_full_precision
from tfx_edge.optimize.model_copy import check_kind, compile_arguments, compile_like, copy_model
from tfx_edge.optimize.technique_inputs import check_inputs
from tfx_edge.schemas import DistillationConfig, DistillationReport, EdgeError


def distill(
    teacher: tf_keras.Model,
    dataset: tf.data.Dataset,
    config: DistillationConfig,
    *,
    student_fn: Callable[[tf_keras.Model], tf_keras.Model] | None = None,
    validation: tf.data.Dataset | None = None,
) -> tuple[tf_keras.Model, DistillationReport]:
    """Trains a smaller model on the labels and on what the teacher says of the same examples, augmented alike.

    The loss is (1 - alpha) x the labels' + alpha x the teacher's (Hinton et al. 2015) + feature_weight x the features'.

    Args:
        teacher: Keras 2, functional or Sequential, one output, inputs named as the features; stays as it is.
        dataset: one pass over the examples, one at a time, as `fine_tune` takes it.
        config: the student's scale, temperature and weights, and how it is trained.
        student_fn: makes the student, in place of `config.student`: functional or Sequential, its inputs named as the teacher's,
            its output of the same shape and kind; it may be trained already.
        validation: for early stopping, as `fine_tune` takes it.

    Returns:
        The student, compiled as the teacher was, and how it was taught.

    Raises:
        EdgeError: the student doesn't fit the teacher or has its weights, no loss is known, a layer to match is missing, or the
            examples don't fit.
    """
    tuning = config.fine_tuning
    check_inputs(teacher, dataset, validation)
    tf_keras.utils.set_random_seed(tuning.seed)
    student: Any = _made(student_fn, teacher) if student_fn is not None else scaled_student(teacher, config.student)
    check_kind(student)
    check_full_precision(student)
    check_student(teacher, student)
    check_own_layers(teacher, student)
    check_learns(student)
    check_activation(teacher, student)
    loss = training_loss(teacher, tuning)
    outputs = outputs_of(loss, teacher.outputs[0].shape[-1], config)
    teaching = teach(teacher, student, outputs, config)
    # Keras adds up: the loss on the labels by its weight, and what the layers in the model added.
    teaching.model.compile(**{**compile_arguments(teacher), "loss": loss, "loss_weights": [1 - config.alpha]})
    history = fine_tune(teaching.model, dataset, tuning, validation=validation)
    result = copy_model(student)  # its own layers also belong to the model that it was taught in
    compile_like(result, teacher, input_batches(result, dataset, tuning).take(1))
    check_trained(result.weights, f"student {result.name!r}", tuning)
    regression = outputs.kind == "regression"
    return result, DistillationReport(
        config=config,
        task="regression" if regression else "classification",
        teacher_parameters=teacher.count_params(),
        student_parameters=result.count_params(),
        temperature=1.0 if regression else config.temperature,
        alpha=config.alpha,
        losses={name: tuple(map(float, values)) for name, values in history.history.items()},
        matched=teaching.matched,
    )


def _made(student_fn: Callable[[tf_keras.Model], tf_keras.Model], teacher: tf_keras.Model) -> Any:
    if isinstance(student_fn, tf_keras.Model) or not callable(student_fn):
        what = "a model" if isinstance(student_fn, tf_keras.Model) else f"a {type(student_fn).__name__}"
        raise EdgeError(f"student_fn is {what}, not a function; give a function of the teacher that makes the student")
    try:
        return student_fn(teacher)
    except EdgeError:
        raise
    except Exception as error:  # the user's code raises anything
        raise EdgeError(f"student_fn failed: {type(error).__name__}: {one_line(error)}; expected it to return a model") from error
