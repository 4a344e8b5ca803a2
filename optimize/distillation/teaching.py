"""Teacher and student side by side in one model, whose training trains the student alone."""

from dataclasses import dataclass
from typing import Any

import tf_keras

from tfx_edge.optimize.distillation.loss import Lesson, Outputs
from tfx_edge.optimize.model_copy import copy_model
from tfx_edge.schemas import DistillationConfig, EdgeError, MatchedLayers


@dataclass(frozen=True)
class Teaching:
    """A model that gives the student's output and has the teacher's in its loss.

    Attributes:
        model: not compiled; its inputs are named as the teacher's; it holds the student's own layers.
        matched: the layers whose outputs it compares.
    """

    model: tf_keras.Model
    matched: tuple[MatchedLayers, ...]


def check_student(teacher: tf_keras.Model, student: Any) -> None:
    """Checks that a student takes what its teacher takes and gives an output of the same shape.

    Raises:
        EdgeError: it doesn't; the text says what differs.
    """
    inputs, known = (dict(zip(m.input_names, m.inputs, strict=True)) for m in (student, teacher))
    unknown = [name for name in inputs if name not in known]
    if unknown:
        raise EdgeError(
            f"student {student.name!r}: input {', '.join(map(repr, unknown))} is none of the teacher's, {', '.join(known)}; "
            "name its inputs as these"
        )
    for name, tensor in inputs.items():
        if (tensor.shape[1:], tensor.dtype) != (known[name].shape[1:], known[name].dtype):
            raise EdgeError(
                f"student {student.name!r}: input {name!r} is {tensor.dtype.name} {tuple(tensor.shape)}, the teacher's "
                f"{known[name].dtype.name} {tuple(known[name].shape)}; give it the same"
            )
    for model, what in ((teacher, "teacher"), (student, "student")):
        if len(model.outputs) != 1:
            raise EdgeError(f"{what} {model.name!r} has {len(model.outputs)} outputs ({', '.join(model.output_names)}); expected one")
    if student.outputs[0].shape[1:] != teacher.outputs[0].shape[1:]:
        raise EdgeError(
            f"student {student.name!r}: its output has shape {tuple(student.outputs[0].shape)}, the teacher's "
            f"{tuple(teacher.outputs[0].shape)}; give both the same last layer"
        )


def teach(teacher: tf_keras.Model, student: tf_keras.Model, outputs: Outputs, config: DistillationConfig) -> Teaching:
    """Puts both models behind the same inputs.

    Args:
        teacher: stays as it is; a frozen copy is used, as in inference.
        student: its layers are used and so trained.
        outputs: what the outputs of both are.
        config: the weights, and which layers to match.

    Raises:
        EdgeError: a layer to match isn't there, is called several times, or has another number of places.
    """
    frozen = _frozen(teacher)
    pairs = [(match.teacher, match.student or match.teacher) for match in config.features]
    wanted = [_output(frozen, name, "teacher") for name, _ in pairs]
    given = [_output(student, name, "student") for _, name in pairs]
    for (name, own), theirs, ours in zip(pairs, wanted, given, strict=True):
        if theirs.shape[1:-1] != ours.shape[1:-1]:
            raise EdgeError(
                f"FeatureMatch: teacher's layer {name!r} gives shape {tuple(theirs.shape)}, student's layer {own!r} {tuple(ours.shape)}; "
                "only the last axis may differ; take layers at the same place"
            )
    inputs = {n: tf_keras.Input(t.shape[1:], dtype=t.dtype, name=n) for n, t in zip(teacher.input_names, teacher.inputs, strict=True)}
    told = _called(frozen, [frozen.outputs[0], *wanted], inputs, "teacher", training=False)
    said = _called(student, [student.outputs[0], *given], inputs, "student")
    projected = [ours.shape[-1] != theirs.shape[-1] for theirs, ours in zip(wanted, given, strict=True)]
    features = [
        tf_keras.layers.Dense(target.shape[-1], use_bias=False, name=f"projection_{i}")(feature) if project else feature
        for i, (feature, target, project) in enumerate(zip(said[1:], told[1:], projected, strict=True))
    ]
    output = Lesson(outputs, config, name=teacher.output_names[0])((said[0], told[0], features, told[1:]))
    matched = tuple(MatchedLayers(teacher=t, student=s, projected=p) for (t, s), p in zip(pairs, projected, strict=True))
    return Teaching(tf_keras.Model(list(inputs.values()), output, name=student.name), matched)


def _frozen(teacher: tf_keras.Model) -> tf_keras.Model:
    """A copy that doesn't learn, without the penalties on its weights and activations, which the student can't lower."""
    frozen = copy_model(teacher)
    frozen.trainable = False
    for layer in (part for part in frozen.submodules if isinstance(part, tf_keras.layers.Layer)):
        layer._callable_losses.clear()  # one for each regularized weight; Keras has no other way to it
        layer._losses.clear()  # what the activities of the copy's own inputs cost
        layer._activity_regularizer = None  # wrappers such as Bidirectional only read it from the layer in them
    return frozen


def _called(model: tf_keras.Model, outputs: list[Any], inputs: dict[str, Any], name: str, **kwargs: Any) -> list[Any]:
    part = tf_keras.Model(model.inputs, outputs, name=name)
    called = part([inputs[n] for n in model.input_names], **kwargs)
    return list(called) if isinstance(called, (list, tuple)) else [called]


def _output(model: tf_keras.Model, name: str, what: str) -> Any:
    """What a layer gives, as a tensor of the model."""
    for node in (node for nodes in model._nodes_by_depth.values() for node in nodes):
        if node.layer.name == name and not isinstance(node.outputs, (list, tuple, dict)):
            return node.outputs
    raise EdgeError(
        f"FeatureMatch: {what} {model.name!r} has no layer {name!r} with one output; "
        f"it has {', '.join(layer.name for layer in model.layers)}"
    )
