"""Finding NaN and infinity in weights, which spread to every output that they touch."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tfx_edge.schemas import EdgeError, FineTuningConfig


def check_finite(variables: Iterable[Any], model: str, fix: str = "train it again with a lower learning rate or cleaner data") -> None:
    """Checks the floating-point variables of a model.

    Args:
        variables: TensorFlow variables; those of other types are left out.
        model: what to call the model in an error.
        fix: what the user can do about it.

    Raises:
        EdgeError: a variable holds NaN or infinity; the text names the first.
    """
    for variable in variables:
        if not variable.dtype.is_floating:
            continue
        bad = int(np.count_nonzero(~np.isfinite(variable.numpy())))
        if bad:
            raise EdgeError(
                f"{model}: variable {variable.name.removesuffix(':0')!r} holds {bad} NaN or infinite values of "
                f"{variable.shape.num_elements()}; expected finite numbers; {fix}"
            )


def check_trained(variables: Iterable[Any], model: str, config: FineTuningConfig) -> None:
    """Checks what a fine-tuning left; see `check_finite`."""
    check_finite(variables, model, f"lower FineTuningConfig.learning_rate ({config.learning_rate})")
