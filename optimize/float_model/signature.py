"""SavedModels whose serving signature takes the features by name, as `FloatModel.save` and other frameworks write them."""

from typing import Any

import tensorflow as tf

from tfx_edge.optimize.float_model.model import FloatModel, named_spec
from tfx_edge.schemas import Signature

SERVING = "serving_default"


def takes_examples(signature: Any) -> bool:
    """Whether a signature takes serialized tf.Examples: one input, a vector of strings."""
    specs = list(signature.structured_input_signature[1].values())
    return len(specs) == 1 and specs[0].dtype == tf.string and specs[0].shape.rank in (None, 1)


def from_signature(loaded: Any, name: str = SERVING) -> FloatModel | None:
    """Wraps a signature, or returns None when there is none of that name on named features."""
    signature = loaded.signatures.get(name)
    if signature is None or takes_examples(signature):
        return None
    inputs = signature.structured_input_signature[1]

    def function(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        return dict(signature(**features))

    return FloatModel(
        Signature(
            inputs=tuple(named_spec(n, inputs[n]) for n in sorted(inputs)),
            outputs=tuple(named_spec(n, t) for n, t in sorted(signature.structured_outputs.items())),
        ),
        tf.function(function),
        signature.variables,
    )
