"""What would teach a student wrongly without an error: layers shared with the teacher, another kind of output."""

import tf_keras

from tfx_edge.schemas import EdgeError

_PASSING_ON = (tf_keras.layers.Reshape, tf_keras.layers.Flatten, tf_keras.layers.Dropout)


def check_own_layers(teacher: tf_keras.Model, student: tf_keras.Model) -> None:
    """Raises EdgeError if the student has weights of the teacher, which training would change."""
    taught = {id(weight) for weight in teacher.weights}
    for layer in student.layers:
        if any(id(weight) in taught for weight in layer.weights):
            raise EdgeError(
                f"student_fn: the student's layer {layer.name!r} has the teacher's own weights, which training would change; "
                "make new layers, or take them from tf_keras.models.clone_model(teacher) and set_weights(teacher.get_weights())"
            )


def check_activation(teacher: tf_keras.Model, student: tf_keras.Model) -> None:
    """Raises EdgeError if one's output layer gives logits and the other's probabilities; unknown layers pass."""
    expected, given = _activation(teacher), _activation(student)
    if expected and given and expected != given and {expected, given} & {"softmax", "sigmoid"}:
        raise EdgeError(
            f"student {student.name!r}: its output layer {student.output_names[0]!r} has the activation {given}, that of teacher "
            f"{teacher.name!r} has {expected}, which the loss is for; give the student's output layer activation={expected!r}"
        )


def _activation(model: tf_keras.Model) -> str | None:
    """The activation that the output went through last; layers behind it that only pass values on don't count."""
    output = model.outputs[0]
    while True:
        layer, node_index, _ = output._keras_history
        if isinstance(layer, tf_keras.layers.Softmax):
            return "softmax"
        name = getattr(getattr(layer, "activation", None), "__name__", None)
        passes_on = isinstance(layer, _PASSING_ON) or (isinstance(layer, tf_keras.layers.Activation) and name == "linear")
        if not passes_on:
            return name
        output = layer.get_input_at(node_index)
