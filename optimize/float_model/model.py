"""The float model: what converter, calibration and baseline use, and nothing more."""

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from numpy.typing import NDArray

from tfx_edge.schemas import EdgeError, Signature, TensorSpec


@dataclass(frozen=True)
class FloatModel:
    """A function on named transformed features, and the Keras model it came from where there is one.

    Attributes:
        signature: inputs, named as the transformed features, and outputs; the batch dimension is None.
        function: keyword arguments by input name, tensors of the signature's dtypes and shapes; returns the outputs by name. A Python
            function, where a name isn't one that Python takes.
        resources: the variables (and other trackable resources) that the function reads.
        keras_model: a functional Keras 2 model without any transform layer, compiled if the saved one was; None where the
            Trainer saved none.
        batch_size: the only number of examples that the function takes; None where it takes any.
    """

    signature: Signature
    function: Callable[..., dict[str, tf.Tensor]]
    resources: Sequence[Any]
    keras_model: tf_keras.Model | None = None
    batch_size: int | None = None

    def predict(self, features: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Predicts a batch of any size: in steps, the last one filled up, where the function is fixed to one.

        Args:
            features: `[n, ...]` each, arrays or tensors by feature name; may hold more than the model takes.

        Returns:
            The outputs `[n, ...]` by name.

        Raises:
            EdgeError: an input has no feature, or one of another shape or kind.
        """
        batch = self.signature.feed({name: _array(name, values) for name, values in features.items()})
        inputs = [_tensor(batch[s.name], s) for s in self.signature.inputs]
        if self.batch_size is None:
            return {name: values.numpy() for name, values in self._compiled(*inputs).items()}
        count, size = len(inputs[0]), self.batch_size
        rows = np.minimum(np.arange(-(-count // size) * size), count - 1).reshape(-1, size)
        steps = [self._compiled(*(tf.gather(values, step) for values in inputs)) for step in rows]
        return {name: np.concatenate([step[name] for step in steps])[:count] for name in steps[0]}

    def save(self, path: str, batch_size: int | None = None) -> None:
        """Writes a plain SavedModel whose signature `serving_default` takes the features; see `save_models`."""
        save_models({"serving_default": self}, path, batch_size)

    def traced(self, batch_size: int | None = None) -> Any:
        """The concrete function for a batch of a size, None for any; its inputs and outputs are named as `saved_names` has it.

        A model that loops over time steps, as recurrent layers do, is fixed to a batch of one example where no size is asked for: the
        converter has no operators for such loops over a batch of any size.

        Raises:
            EdgeError: the function is fixed to another batch.
        """
        if None not in (batch_size, self.batch_size) and batch_size != self.batch_size:
            raise EdgeError(
                f"batch_size {batch_size}: the model takes batches of {self.batch_size} alone; leave batch_size out, or save the model "
                "with a first dimension of any size"
            )
        batch_size = self.batch_size if batch_size is None else batch_size
        inputs, outputs = self.saved_names

        def function(**tensors: tf.Tensor) -> dict[str, tf.Tensor]:
            given = self._body(**{name: tensors[saved] for name, saved in inputs.items()})
            return {outputs[name]: tensor for name, tensor in given.items()}

        def trace(size: int | None) -> Any:
            shapes = [s.shape if size is None else (size, *s.shape[1:]) for s in self.signature.inputs]
            named = zip(self.signature.inputs, shapes, strict=True)
            specs = [s.model_copy(update={"name": inputs[s.name], "shape": shape}) for s, shape in named]
            return tf.function(function).get_concrete_function(**tensor_specs(specs))

        concrete = trace(batch_size)
        return trace(1) if batch_size is None and _loops_over_lists(concrete.graph.as_graph_def()) else concrete

    @property
    def saved_names(self) -> tuple[dict[str, str], dict[str, str]]:
        """What inputs and outputs are called in a SavedModel, by their names: the same where TensorFlow takes them."""
        return _saved_names("input", self.signature.inputs), _saved_names("output", self.signature.outputs)

    @property
    def _body(self) -> Callable[..., dict[str, tf.Tensor]]:
        """The function itself: traces of it for other shapes may be there already, and would be taken for a new one."""
        body: Callable[..., dict[str, tf.Tensor]] = getattr(self.function, "python_function", self.function)
        return body

    @cached_property
    def _compiled(self) -> Any:
        """Takes the inputs by position: names of features needn't be Python's, which those of a tf.function's parameters must be."""
        names = self.signature.input_names
        return tf.function(lambda *tensors: self._body(**dict(zip(names, tensors, strict=True))), reduce_retracing=True)


def save_models(models: Mapping[str, FloatModel], path: str, batch_size: int | None = None) -> None:
    """Writes a plain SavedModel for the converter.

    Args:
        models: by the name of the signature that each becomes, which takes the features by their `FloatModel.saved_names`.
        path: a folder.
        batch_size: examples that the signatures take; None for any, or one where a model loops over time steps.
    """
    module = tf.Module()
    module.resources = [resource for model in models.values() for resource in model.resources]
    tf.saved_model.save(module, path, signatures={name: model.traced(batch_size) for name, model in models.items()})


class KeepAlive(tf.__internal__.tracking.AutoTrackable):  # type: ignore[misc]
    """Holds the loaded object, whose variables die with it, without making its functions part of what is saved."""

    def __init__(self, loaded: Any) -> None:
        self.loaded = lambda: loaded


def _saved_names(kind: str, specs: Sequence[TensorSpec]) -> dict[str, str]:
    names = [spec.name for spec in specs]
    taken = {*keyword.kwlist, "self"}  # by Python, and by tf.function's own methods
    plain = all(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) and name not in taken for name in names)
    if plain and len({name.lower() for name in names}) == len(names):
        return {name: name for name in names}
    return {name: f"{kind}_{place:04}" for place, name in enumerate(names)}


def tensor_specs(inputs: Sequence[TensorSpec]) -> dict[str, tf.TensorSpec]:
    """TensorFlow's form of named inputs."""
    return {s.name: tf.TensorSpec(s.shape, s.dtype, name=s.name) for s in inputs}


def _loops_over_lists(definition: Any) -> bool:
    """Whether a graph or a function in it keeps a list of tensors, one a time step."""
    nodes = (*definition.node, *(node for function in definition.library.function for node in function.node_def))
    return any(node.op.startswith("TensorList") for node in nodes)


def named_spec(name: str, tensor: Any) -> TensorSpec:
    """The spec of a tensor or tf.TensorSpec; its first dimension is the batch and may be of any size.

    Raises:
        EdgeError: it has no such dimension.
    """
    if not tensor.shape.rank:
        kind = "a single value" if tensor.shape.rank == 0 else "of any shape"
        raise EdgeError(f"the model's tensor {name!r} is {kind}; save the model with a batch of examples [None, ...] there")
    shape = tensor.shape.as_list()
    return TensorSpec(name=name, shape=(None, *shape[1:]), dtype=tf.as_dtype(tensor.dtype).name)


def fixed_batch(inputs: Mapping[str, Any]) -> int | None:
    """The only batch that a function with such inputs takes, by their tf.TensorSpecs; None where it takes any.

    Raises:
        EdgeError: two inputs are fixed to different ones.
    """
    sizes = {name: spec.shape[0] for name, spec in sorted(inputs.items()) if spec.shape[0] is not None}
    if len(set(sizes.values())) > 1:
        raise EdgeError(f"the model's inputs take batches of different sizes, {sizes}; save it with a first dimension of any size")
    return next(iter(sizes.values()), None)


def _array(name: str, values: Any) -> NDArray[Any]:
    if isinstance(values, tf.Tensor) and hasattr(values, "numpy"):
        return np.asarray(values.numpy())
    if isinstance(values, (tf.Tensor, tf.RaggedTensor, tf.SparseTensor)):
        raise EdgeError(f"feature {name!r} is a {type(values).__name__} without values or a fixed shape; expected an array [n, ...]")
    return np.asarray(values)


def _tensor(value: NDArray[Any], spec: TensorSpec) -> tf.Tensor:
    if spec.dtype != "string" and not np.can_cast(value.dtype, spec.dtype, "same_kind"):
        raise EdgeError(
            f"feature {spec.name!r}: {value.dtype}, the model's input takes {spec.dtype}; cast it in Transform's preprocessing_fn"
        )
    return tf.constant(value, spec.dtype)
