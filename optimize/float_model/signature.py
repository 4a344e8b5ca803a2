"""SavedModels whose serving signature takes the features by name, as `FloatModel.save` and other frameworks write them."""

from typing import Any

import tensorflow as tf

from tfx_edge.optimize.float_model.model import FloatModel, KeepAlive, fixed_batch, named_spec
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
    specs = Signature(
        inputs=tuple(named_spec(n, inputs[n]) for n in sorted(inputs)),
        outputs=tuple(named_spec(n, t) for n, t in sorted(signature.structured_outputs.items())),
    )

    def function(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        return dict(signature(**features))

    return FloatModel(specs, function, (*signature.variables, KeepAlive(loaded)), batch_size=fixed_batch(inputs))


def default_signature(loaded: Any) -> str | None:
    """The signature that stands for the whole model: `serving_default`, or the only one; None where there is no such."""
    names = list(loaded.signatures)
    return SERVING if SERVING in names else names[0] if len(names) == 1 else None
