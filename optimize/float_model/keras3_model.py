"""A Keras 3 model in Keras 2: each layer's twin by class name and config, called in the same graph, with the same weights.

Keras 3 lies beside Keras 2 in every environment that has TensorFlow 2.16 or later; both work in one process.
"""

import inspect
from typing import Any

import numpy as np
import tf_keras

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.float_model.made_up_features import make_examples
from tfx_edge.schemas import EdgeError

_TOLERANCE = 1e-5
_RENAMED = {"LeakyReLU": {"negative_slope": "alpha"}}
_ADDED = {"MultiHeadAttention": dict.fromkeys(("query_shape", "key_shape", "value_shape"))}  # known when it is called
_MASKS = ("mask", "query_mask", "value_mask", "key_mask")
_CURE = "build the model with the layers of tf_keras, or replace this layer"


def to_keras2(model: Any) -> tf_keras.Model:
    """Converts a Keras 3 model whose layers all have Keras 2 twins.

    Args:
        model: functional or Sequential, of package `keras` version 3, built; stays as it is.

    Returns:
        A functional tf_keras model with the same input and output names and weights, nested models flattened, outputs checked equal
        on made-up inputs. Compiled with the loss and the metrics of the given one where they have twins, and Adam.

    Raises:
        EdgeError: a layer has no twin in Keras 2, or outputs differ; the text names the layer.
    """
    if not hasattr(model, "_nodes_by_depth"):  # Keras 3 keeps the functional model of a Sequential beside it
        inner = getattr(model, "_functional", None)
        if inner is None:
            raise EdgeError(
                f"model {model.name!r} ({type(model).__name__}) is neither functional nor Sequential with a known input shape; "
                "rebuild it with the functional API"
            )
        return _named(to_keras2(inner), model)
    walk = _Walk()
    inputs = [_input(tensor) for tensor in model.inputs]
    outputs = walk.run(model, inputs)
    names = list(model.output_names)
    converted = tf_keras.Model(inputs, outputs, name=model.name)
    if converted.output_names != names:
        named = [
            t if have == want else tf_keras.layers.Activation("linear", name=want, dtype=t.dtype)(t)
            for t, have, want in zip(outputs, converted.output_names, names, strict=True)
        ]
        converted = tf_keras.Model(inputs, named, name=model.name)
    walk.copy_weights()
    _compare(model, converted)
    _compile(model, converted)
    return converted


def _named(converted: tf_keras.Model, model: Any) -> tf_keras.Model:
    converted._name = model.name
    _compile(model, converted)
    return converted


def _input(tensor: Any) -> Any:
    return tf_keras.Input(batch_shape=(None, *tensor.shape[1:]), dtype=tensor.dtype, name=tensor.name)


class _Walk:
    """Calls twins of the layers of a model, and of those nested in it, on Keras 2 tensors."""

    def __init__(self) -> None:
        self._twins: dict[int, tuple[Any, tf_keras.layers.Layer]] = {}
        self._taken: set[str] = set()

    def run(self, model: Any, inputs: list[Any]) -> list[Any]:
        if not hasattr(model, "_nodes_by_depth"):
            model = model._functional
        values = {id(old): new for old, new in zip(model.inputs, inputs, strict=True)}
        needed = _needed(model)
        for depth in sorted(model._nodes_by_depth, reverse=True):
            for node in model._nodes_by_depth[depth]:
                if node.is_input or id(node) not in needed:
                    continue
                args, kwargs = _in_place((node.arguments.args, _kwargs(node)), values)
                outputs = self._call(node.operation, args, kwargs)
                values.update((id(old), new) for old, new in zip(node.outputs, _flat(outputs), strict=True))
        return [values[id(tensor)] for tensor in model.outputs]

    def _call(self, layer: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if hasattr(layer, "_nodes_by_depth") or getattr(layer, "_functional", None) is not None:
            return self.run(layer, _flat(args[0]))
        if id(layer) not in self._twins:
            self._twins[id(layer)] = (layer, self._twin(layer))
        try:
            return self._twins[id(layer)][1](*args, **kwargs)
        except Exception as error:  # a call raises anything
            raise EdgeError(f"layer {layer.name!r} ({type(layer).__name__}): Keras 2 can't call it ({one_line(error)}); {_CURE}") from error

    def _twin(self, layer: Any) -> tf_keras.layers.Layer:
        kind = type(layer).__name__
        config = _config({"class_name": kind, "config": layer.get_config(), "module": type(layer).__module__}, layer.name)["config"]
        name = layer.name
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        try:
            return getattr(tf_keras.layers, kind).from_config({**config, "name": name})
        except Exception as error:  # a layer's from_config raises anything
            raise EdgeError(f"layer {layer.name!r} ({kind}): Keras 2 can't make it from its config ({one_line(error)}); {_CURE}") from error

    def copy_weights(self) -> None:
        for layer, twin in self._twins.values():
            values = [np.asarray(weight) for weight in layer.weights]
            if not values and not layer.weights:
                continue
            if [v.shape for v in values] != [tuple(w.shape) for w in twin.weights]:
                have, want = ([tuple(w.shape) for w in side.weights] for side in (layer, twin))
                raise EdgeError(f"layer {layer.name!r} ({type(layer).__name__}): weights {have}, its Keras 2 twin has {want}; {_CURE}")
            twin.set_weights(values)
            if hasattr(twin, "finalize_state"):
                twin.finalize_state()


def _kwargs(node: Any) -> dict[str, Any]:
    """What was given to a call, without what Keras 3 adds.

    Those are masks, which Keras 2 makes again by itself, and the default `training=True` of layers that make data up, which Keras 2
    would take for the user's word at inference too.
    """
    given = {k: v for k, v in node.arguments.kwargs.items() if v is not None and k not in _MASKS}
    return {k: v for k, v in given.items() if (k, v) != ("training", True)}


def _needed(model: Any) -> set[int]:
    """Nodes that lead to an output, by id; what computes masks is not among them."""
    makers = {id(t): node for nodes in model._nodes_by_depth.values() for node in nodes for t in node.outputs}
    todo, needed = [id(t) for t in model.outputs], set()
    while todo:
        node = makers.get(todo.pop())
        if node is not None and id(node) not in needed:
            needed.add(id(node))
            todo += [id(t) for t in _flat([node.arguments.args, _kwargs(node)])]
    return needed


def _in_place(value: Any, values: dict[int, Any]) -> Any:
    """The same nesting with the new tensors for the old."""
    if isinstance(value, dict):
        return {k: _in_place(v, values) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_place(v, values) for v in value]
    return values.get(id(value), value)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [t for key in sorted(value) for t in _flat(value[key])]
    return [t for v in value for t in _flat(v)] if isinstance(value, (list, tuple)) else [value]


def _config(value: Any, layer: str) -> Any:
    """A Keras 3 config as Keras 2 reads it: types by name, no settings that Keras 2 doesn't know."""
    if isinstance(value, (list, tuple)):
        return [_config(v, layer) for v in value]
    if not isinstance(value, dict):
        return value
    if value.get("class_name") == "DTypePolicy":
        return value["config"]["name"]
    if value.get("class_name") == "function":
        return value["config"]
    if not {"class_name", "config"} <= value.keys():
        return {k: _config(v, layer) for k, v in value.items()}
    kind, module = value["class_name"], value.get("module") or ""
    if module.startswith("keras.src.layers") or module == "keras.layers" or (module.startswith("keras") and "ops" in module):
        twin = getattr(tf_keras.layers, kind, None)
        if twin is None or value.get("registered_name"):
            raise EdgeError(f"layer {layer!r} ({kind}) has no twin in Keras 2; {_CURE}")
        renamed = {_RENAMED.get(kind, {}).get(k, k): v for k, v in value["config"].items()}
        known = _parameters(twin)
        config = {**{k: _config(v, layer) for k, v in renamed.items() if k in known}, **_ADDED.get(kind, {})}
        return {"class_name": kind, "config": config}
    if not module.startswith("keras"):
        raise EdgeError(f"layer {layer!r} ({kind} of {module or 'a module unknown'}) has no twin in Keras 2; {_CURE}")
    inner = value["config"]
    for package in (tf_keras.losses, tf_keras.metrics, tf_keras.initializers, tf_keras.regularizers, tf_keras.constraints):
        if module.endswith(package.__name__.rpartition(".")[2]) and hasattr(package, kind):
            inner = {k: v for k, v in inner.items() if k in _parameters(getattr(package, kind))}
    return {**value, "config": _config(inner, layer) if isinstance(inner, dict) else inner}


def _parameters(kind: type) -> set[str]:
    """What a layer's constructor takes, with its bases': what `**kwargs` ends at."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("tf_keras") and "__init__" in vars(base)]
    names = {name for base in bases for name in inspect.signature(vars(base)["__init__"]).parameters} - {"self", "args", "kwargs"}
    return names | ({"name", "trainable", "dtype"} if issubclass(kind, tf_keras.layers.Layer) else set())


def _compare(model: Any, converted: tf_keras.Model) -> None:
    features = make_examples(converted)
    ordered = [features[name] for name in converted.input_names]
    have = _flat(converted(ordered if len(ordered) > 1 else ordered[0], training=False))
    want = _flat(model(_in_structure(model, ordered), training=False))
    for name, a, b in zip(converted.output_names, have, want, strict=True):
        difference = float(np.max(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))))
        if not difference <= _TOLERANCE * max(1.0, float(np.max(np.abs(np.asarray(b))))):
            raise EdgeError(f"model {model.name!r}: in Keras 2 output {name!r} differs by {difference:.3g} from Keras 3's; {_CURE}")


def _in_structure(model: Any, ordered: list[Any]) -> Any:
    """Inputs in the structure that a Keras 3 model was built with."""
    structure = getattr(model, "_inputs_struct", None)
    if isinstance(structure, dict):
        by_name = dict(zip((tensor.name for tensor in model.inputs), ordered, strict=True))
        return {key: by_name[tensor.name] for key, tensor in structure.items()}
    return ordered if len(ordered) > 1 else ordered[0]


def _compile(model: Any, converted: tf_keras.Model) -> None:
    config = model.get_compile_config() if getattr(model, "compiled", False) else None
    if not config:
        return
    try:
        made = {
            key: tf_keras.saving.deserialize_keras_object(_config(config.get(key), model.name))
            for key in ("loss", "loss_weights", "metrics")
        }
        converted.compile("adam", **made)
    except Exception:  # noqa: BLE001 - a loss of the user's own: the model stays uncompiled, and a config can name a loss
        return
