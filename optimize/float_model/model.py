"""The float model: what converter, calibration and baseline use, and nothing more."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
        function: keyword arguments by input name, tensors of the signature's dtypes and shapes; returns the outputs by name.
        resources: the variables (and other trackable resources) that the function reads.
        keras_model: a functional Keras 2 model without any transform layer, compiled if the saved one was; None where the
            Trainer saved none.
    """

    signature: Signature
    function: Callable[..., dict[str, tf.Tensor]]
    resources: Sequence[Any]
    keras_model: tf_keras.Model | None = None

    def predict(self, features: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Runs one batch.

        Args:
            features: `[n, ...]` each, arrays or tensors by feature name; may hold more than the model takes.

        Returns:
            The outputs `[n, ...]` by name.

        Raises:
            EdgeError: an input has no feature, or one of another shape or kind.
        """
        batch = self.signature.feed({name: _array(name, values) for name, values in features.items()})
        return {k: v.numpy() for k, v in self.function(**{s.name: _tensor(batch[s.name], s) for s in self.signature.inputs}).items()}

    def save(self, path: str) -> None:
        """Writes a plain SavedModel whose signature `serving_default` takes the features by name, for the converter.

        A model that loops over time steps, as recurrent layers do, is fixed to a batch of one example: the converter has no
        operators for such loops over a batch of any size.
        """
        module = tf.Module()
        module.resources = list(self.resources)
        concrete = tf.function(self.function).get_concrete_function(**tensor_specs(self.signature.inputs))
        if _loops_over_lists(concrete.graph.as_graph_def()):
            one = [s.model_copy(update={"shape": (1, *s.shape[1:])}) for s in self.signature.inputs]
            # A trace for any size may be there already, and would be taken for a batch of one too.
            body = getattr(self.function, "python_function", self.function)
            concrete = tf.function(body).get_concrete_function(**tensor_specs(one))
        tf.saved_model.save(module, path, signatures={"serving_default": concrete})


def tensor_specs(inputs: Sequence[TensorSpec]) -> dict[str, tf.TensorSpec]:
    """TensorFlow's form of named inputs."""
    return {s.name: tf.TensorSpec(s.shape, s.dtype, name=s.name) for s in inputs}


def _loops_over_lists(definition: Any) -> bool:
    """Whether a graph or a function in it keeps a list of tensors, one a time step."""
    nodes = (*definition.node, *(node for function in definition.library.function for node in function.node_def))
    return any(node.op.startswith("TensorList") for node in nodes)


def named_spec(name: str, tensor: Any) -> TensorSpec:
    """The spec of a tensor or tf.TensorSpec; its first dimension is the batch and may be of any size."""
    shape = tensor.shape.as_list()
    return TensorSpec(name=name, shape=(None, *shape[1:]), dtype=tf.as_dtype(tensor.dtype).name)


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
