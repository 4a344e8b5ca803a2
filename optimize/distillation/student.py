"""A student made of the teacher's graph: narrower layers, fewer repeated ones."""

from collections import defaultdict
from typing import Any, TypeAlias

import tf_keras
from tf_keras import layers

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.frozen import is_frozen
from tfx_edge.optimize.graph import rebuild
from tfx_edge.optimize.layer_calls import LayerCall, layer_calls
from tfx_edge.schemas import EdgeError, ScaledStudent

Layer: TypeAlias = tf_keras.layers.Layer

_WIDTHS = {"Dense": "units", "SimpleRNN": "units", "LSTM": "units", "GRU": "units", "Embedding": "output_dim"} | dict.fromkeys(
    ("Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "SeparableConv1D", "SeparableConv2D"), "filters"
)
_FOLLOWERS = (layers.BatchNormalization, layers.LayerNormalization, layers.Activation, layers.ReLU, layers.LeakyReLU, layers.Dropout)


def scaled_student(teacher: tf_keras.Model, scale: ScaledStudent) -> tf_keras.Model:
    """Makes a smaller model of the same graph, with the teacher's inputs and output, and new weights.

    Width: Dense, convolutions, recurrent layers and embeddings get fewer units, but for those that no other such layer comes after.
    Depth: of equal layers (one class and config) whose output has the shape of their input, a share is kept, the first ones; a
    dropped layer takes the normalization, activation or dropout behind it along. Frozen layers are made anew like all others, and
    train. Layers whose weights never do, such as Normalization, keep theirs.

    Args:
        teacher: functional or Sequential, built; stays as it is.
        scale: how much smaller.

    Returns:
        A flat functional model, not compiled.

    Raises:
        EdgeError: the narrower layers don't fit together, as before a Reshape to a fixed size, or save nothing.
    """
    flat = rebuild(teacher)
    calls = list(layer_calls(flat))
    last, dropped = _last(flat, calls), set[str]()
    if scale.depth < 1:
        dropped = _dropped(calls, last, scale.depth)
    made: dict[str, Layer] = {}

    def replace(layer: Layer, inputs: Any, kwargs: dict[str, Any]) -> Any:
        if layer.name in dropped:
            return inputs
        if not _learns(layer):
            return None
        try:
            if layer.name not in made:
                width = 1.0 if layer.name in last else scale.width
                made[layer.name] = type(layer).from_config(_narrow(type(layer).__name__, layer.get_config(), width))
                made[layer.name].trainable = True
            return made[layer.name](inputs, **kwargs)
        except Exception as error:  # a layer's from_config or call raises anything
            raise _misfit(teacher, scale, f"layer {layer.name!r} ({type(layer).__name__}) doesn't fit", error) from error

    try:
        student = rebuild(flat, replace)
    except ValueError as error:
        raise _misfit(teacher, scale, "its layers don't fit", error) from error
    except EdgeError as error:
        if str(error).startswith("teacher"):  # what `replace` raised names its layer already
            raise
        raise _misfit(teacher, scale, "its layers don't fit", error) from error
    if student.outputs[0].shape[1:] != teacher.outputs[0].shape[1:]:
        raise _misfit(teacher, scale, f"its output has shape {tuple(student.outputs[0].shape)}", None)
    if (scale.width < 1 or scale.depth < 1) and student.count_params() >= teacher.count_params():
        raise EdgeError(
            f"teacher {teacher.name!r}, scaled to width {scale.width:g} and depth {scale.depth:g}, keeps its {teacher.count_params()} "
            "weights: the output's layers keep their width; write the student as a function student_fn(teacher)"
        )
    return student


def _misfit(teacher: tf_keras.Model, scale: ScaledStudent, what: str, error: Exception | None) -> EdgeError:
    why = f" ({one_line(error)})" if error is not None else ""
    return EdgeError(
        f"teacher {teacher.name!r}, scaled to width {scale.width:g} and depth {scale.depth:g}: {what}{why}; "
        "take another width, or write the student as a function student_fn(teacher)"
    )


def _narrow(kind: str, config: dict[str, Any], width: float) -> dict[str, Any]:
    """A layer's config with fewer units; a wrapper's with a narrower layer in it."""
    narrow = dict(config)
    for inner in ("layer", "backward_layer"):
        if isinstance(narrow.get(inner), dict):
            nested = narrow[inner]
            narrow[inner] = {**nested, "config": _narrow(nested["class_name"], nested["config"], width)}
    if kind in _WIDTHS:
        groups = config.get("groups", 1)
        narrow[_WIDTHS[kind]] = max(1, round(config[_WIDTHS[kind]] * width / groups)) * groups
    return narrow


def _learns(layer: Layer) -> bool:
    """Whether the student's layer is made anew and trained; a frozen one's weights are of no use to it, for they don't fit."""
    return bool(layer.trainable_weights) or is_frozen(layer)


def _scalable(layer: Layer) -> bool:
    inner = layer.layer if isinstance(layer, layers.Wrapper) else layer
    return type(inner).__name__ in _WIDTHS and _learns(layer)


def _last(model: tf_keras.Model, calls: list[LayerCall]) -> set[str]:
    """Layers whose width is that of an output."""
    widths = {id(tensor) for tensor in model.outputs}
    last = set()
    for call in reversed(calls):
        if widths & set(call.outputs):
            if _scalable(call.layer):
                last.add(call.layer.name)
            else:
                widths |= set(call.inputs)
    return last


def _dropped(calls: list[LayerCall], last: set[str], depth: float) -> set[str]:
    """Layers that leave, with what follows each of them."""
    groups: dict[str, list[str]] = defaultdict(list)
    times: dict[str, int] = defaultdict(int)
    for call in calls:
        times[call.layer.name] += 1
    for call in calls:
        same = len(call.inputs) == 1 and call.input_shapes == call.output_shapes and times[call.layer.name] == 1
        if same and _scalable(call.layer) and call.layer.name not in last:
            config = {k: v for k, v in call.layer.get_config().items() if k != "name"}
            groups[repr((type(call.layer).__name__, sorted(config.items(), key=str), call.input_shapes))].append(call.layer.name)
    dropped = {name for names in groups.values() for name in names[round(len(names) * depth) :]}
    gone: set[int] = set()
    for call in calls:
        follows = isinstance(call.layer, _FOLLOWERS) and len(call.inputs) == 1 and call.inputs[0] in gone
        if call.layer.name in dropped or (follows and times[call.layer.name] == 1):
            dropped.add(call.layer.name)
            gone |= set(call.outputs)
    return dropped
