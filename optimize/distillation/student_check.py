"""What would teach a student wrongly without an error: layers shared with the teacher, frozen ones, another kind of output."""

import tf_keras

from tfx_edge.optimize.output_activation import output_activation
from tfx_edge.schemas import EdgeError


def check_own_layers(teacher: tf_keras.Model, student: tf_keras.Model) -> None:
    """Raises EdgeError if the student has weights of the teacher, which training would change."""
    taught = {id(weight) for weight in teacher.weights}
    for layer in student.layers:
        if any(id(weight) in taught for weight in layer.weights):
            raise EdgeError(
                f"student_fn: the student's layer {layer.name!r} has the teacher's own weights, which training would change; "
                "make new layers, or take them from tf_keras.models.clone_model(teacher) and set_weights(teacher.get_weights())"
            )


def check_learns(student: tf_keras.Model) -> None:
    """Raises EdgeError if a student has no weight that trains."""
    if not student.trainable_weights:
        why = "all its layers are frozen (trainable is False)" if student.weights else "it has no weights"
        raise EdgeError(f"student_fn: student {student.name!r} can't learn: {why}; set trainable = True on the layers that are to")


def check_activation(teacher: tf_keras.Model, student: tf_keras.Model) -> None:
    """Raises EdgeError if one's output layer gives logits and the other's probabilities; unknown layers pass."""
    expected, given = output_activation(teacher.outputs[0]), output_activation(student.outputs[0])
    if expected and given and expected != given and {expected, given} & {"softmax", "sigmoid"}:
        raise EdgeError(
            f"student {student.name!r}: its output layer {student.output_names[0]!r} has the activation {given}, that of teacher "
            f"{teacher.name!r} has {expected}, which the loss is for; give the student's output layer activation={expected!r}"
        )
