"""The model alone, on transformed features, cut out of a serving signature on serialized tf.Examples.

TFX's Trainers save `parse_example -> TransformFeaturesLayer -> model` as one signature. In the signature's own function
body, before any optimizer has touched it, the transform layer is one call whose outputs stand in the order of the sorted
names of all transformed features. The nodes between that call's outputs and the signature's outputs are imported into a
new function, with the features in place of the call's outputs and the signature's variables in place of its captures.
Parsing and preprocessing are never reached. It works whatever wrote the model, and keeps inner functions whole.

A graph says nothing about what it means, so the result is compared with the signature before it is returned.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.python.eager import context
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

from tfx_edge.optimize.float_model import raw_examples
from tfx_edge.optimize.float_model.model import FloatModel, KeepAlive, named_spec
from tfx_edge.schemas import EdgeError, Signature

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_TRANSFORM = re.compile(r"(.*/)?transform_features_layer[^/]*/(Stateful)?PartitionedCall")
_TOLERANCE = 1e-5


def cut_behind_transform(loaded: Any, signature: Any, transform_graph: str) -> FloatModel:
    """Takes the model out of a signature on serialized tf.Examples.

    Args:
        loaded: what `tf.saved_model.load` gave; kept alive by the result.
        signature: its serving signature.
        transform_graph: folder of the TransformGraph artifact that the signature's transform layer was made from.

    Raises:
        EdgeError: the signature has no transform layer, or the cut doesn't compute what the signature does.
    """
    import tensorflow_transform as tft

    transform = tft.TFTransformOutput(transform_graph)
    spec = transform.transformed_feature_spec()
    graph, captures, outputs = _body(signature)
    call = next(op for op in graph.get_operations() if _TRANSFORM.fullmatch(op.name))
    names = sorted(spec)
    if [t.dtype for t in call.outputs] != [spec[name].dtype for name in names]:
        have = ", ".join(f"{name} {spec[name].dtype.name}" for name in names)
        raise EdgeError(
            f"the model's transform layer gives {', '.join(t.dtype.name for t in call.outputs)}, the transform graph at {transform_graph} "
            f"{have}; give the transform_graph that the model was trained with"
        )
    features = {name: tensor for name, tensor in zip(names, call.outputs, strict=True) if tensor.consumers()}
    function = _import(graph, captures, features, outputs)
    specs = {n: tf.TensorSpec([None, *spec[n].shape], spec[n].dtype, name=n) for n in features}
    concrete = tf.function(function).get_concrete_function(**specs)
    model = FloatModel(
        Signature(
            inputs=tuple(named_spec(n, s) for n, s in specs.items()),
            outputs=tuple(named_spec(n, t) for n, t in concrete.structured_outputs.items()),
        ),
        tf.function(function),
        (*signature.variables, KeepAlive(loaded)),
    )
    _compare(model, signature, transform)
    return model


def _body(signature: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Follows a signature's wrappers down to the body that calls the transform layer.

    Returns:
        The body's graph, the resource that each captured placeholder stands for, and the output tensors by the
        signature's output names.
    """
    graph = signature.graph
    captures = {placeholder.op.name: value for value, placeholder in graph.captures}
    outputs = {name: _source(tensor) for name, tensor in zip(sorted(signature.structured_outputs), graph.outputs, strict=True)}
    while True:
        calls = [op for op in graph.get_operations() if op.type in _CALLS]
        if any(_TRANSFORM.fullmatch(op.name) for op in calls):
            return graph, captures, outputs
        if len(calls) != 1 or any(tensor.op is not calls[0] for tensor in outputs.values()):
            raise EdgeError(
                "signature 'serving_default' takes serialized tf.Examples but has no TransformFeaturesLayer to cut behind; "
                "save the model with tfx_edge.pipelines.save_model(model, fn_args) in run_fn"
            )
        inner = function_def_to_graph(context.get_function_def(calls[0].get_attr("f").name))
        values = [captures.get(tensor.op.name) for tensor in calls[0].inputs]
        captures = {p.op.name: value for p, value in zip(inner.inputs, values, strict=True) if value is not None}
        outputs = {name: _source(inner.outputs[tensor.value_index]) for name, tensor in outputs.items()}
        graph = inner


def _source(tensor: Any) -> Any:
    """What an output is, behind the Identity operators that signatures wrap it in."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def _import(graph: Any, captures: dict[str, Any], features: dict[str, Any], outputs: dict[str, Any]) -> Any:
    definition = _between(graph.as_graph_def(), features, [t.op.name for t in outputs.values()])
    present = {node.name for node in definition.node}

    def function(**values: tf.Tensor) -> dict[str, tf.Tensor]:
        here = tf.compat.v1.get_default_graph()
        replaced = {_stand_in(name): value for name, value in values.items()}
        replaced |= {name: here.capture(value) for name, value in captures.items() if name in present}
        tensors = tf.graph_util.import_graph_def(
            definition, {f"{k}:0": v for k, v in replaced.items()}, [_imported(t, features) for t in outputs.values()], name=""
        )
        return dict(zip(outputs, tensors, strict=True))

    return function


def _stand_in(feature: str) -> str:
    return "transformed/" + re.sub(r"[^A-Za-z0-9_.]", "_", feature)


def _imported(tensor: Any, features: dict[str, Any]) -> str:
    """Where an output is after the import; a model may hand a feature through as it is."""
    for name, feature in features.items():
        if tensor is feature:
            return f"{_stand_in(name)}:0"
    return str(tensor.name)


def _between(definition: GraphDef, features: dict[str, Any], outputs: list[str]) -> GraphDef:
    """The nodes between the features and the outputs, without control dependencies, and the functions that they call.

    Control dependencies order side effects (assertions on the parsed examples, say); a model at inference has none.
    """
    stand_in = {key: _stand_in(name) for name, t in features.items() for key in (t.name, t.name.removesuffix(":0"))}
    result = GraphDef(versions=definition.versions)
    for name, tensor in features.items():
        result.node.add(name=_stand_in(name), op="Placeholder").attr["dtype"].type = tensor.dtype.as_datatype_enum
    nodes = {node.name: node for node in definition.node}
    done = {_stand_in(name) for name in features}
    todo = list(outputs)
    while todo:
        name = todo.pop()
        if name in done:
            continue
        done.add(name)
        node = NodeDef()
        node.CopyFrom(nodes[name])
        inputs = [stand_in.get(i, i) for i in node.input if not i.startswith("^")]
        node.ClearField("input")
        node.input.extend(inputs)
        result.node.append(node)
        todo += [i.split(":")[0] for i in inputs]
    functions = {f.signature.name: f for f in definition.library.function}
    called: set[str] = set()
    todo = [name for node in result.node for name in _called(node)]
    while todo:
        name = todo.pop()
        if name not in called and name in functions:
            called.add(name)
            todo += [inner for node in functions[name].node_def for inner in _called(node)]
    result.library.function.extend(functions[name] for name in sorted(called))
    return result


def _called(node: NodeDef) -> Iterator[str]:
    for attribute in node.attr.values():
        if attribute.HasField("func"):
            yield attribute.func.name
        yield from (f.name for f in attribute.list.func)


def _compare(model: FloatModel, signature: Any, transform: Any) -> None:
    """Feeds made-up raw examples to the signature, and transformed to the model."""
    raw_spec = transform.raw_feature_spec()
    examples = tf.constant(raw_examples.make(raw_spec, count=16))
    try:
        transformed = transform.transform_features_layer()(tf.io.parse_example(examples, raw_spec))
        want = signature(**{next(iter(signature.structured_input_signature[1])): examples})
        have = model.predict({k: v.numpy() for k, v in transformed.items() if isinstance(v, tf.Tensor)})
    except tf.errors.OpError as error:
        raise EdgeError(
            f"the model behind the transform layer could not be checked against its serving signature: {str(error).splitlines()[0]}; "
            "save the model with tfx_edge.pipelines.save_model(model, fn_args) in run_fn"
        ) from error
    for name, value in want.items():
        if not np.allclose(have[name], value.numpy(), rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True):
            raise EdgeError(
                f"the model behind the transform layer differs from its serving signature by {np.abs(have[name] - value.numpy()).max()} "
                f"in output {name!r}; give the transform_graph that it was trained with, or save it with tfx_edge.pipelines.save_model"
            )
