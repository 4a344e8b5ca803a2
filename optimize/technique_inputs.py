"""What every technique asks of its model and its examples before it starts."""

from typing import Any

from tfx_edge.optimize.fine_tuning.data_checks import check_dataset
from tfx_edge.optimize.finite import check_finite
from tfx_edge.optimize.half_precision import check_full_precision
from tfx_edge.optimize.model_copy import check_kind


def check_inputs(model: Any, dataset: Any, validation: Any) -> None:
    """Checks what can be known before anything is computed.

    Args:
        model: the user's; its weights are looked at.
        dataset: the user's training examples.
        validation: the user's validation examples, or None.

    Raises:
        EdgeError: the model isn't one whose layers can be replaced, computes in 16 bits or has weights that aren't finite, or the
            examples are no tf.data.Dataset.
    """
    check_kind(model)
    check_dataset(dataset, "training")
    if validation is not None:
        check_dataset(validation, "validation")
    check_full_precision(model)
    check_finite(model.weights, f"model {model.name!r}")
