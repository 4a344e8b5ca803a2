"""What a model takes and gives: named tensors, and how an array of examples is made to fit one."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.errors import EdgeError


class TensorSpec(Config):
    """One named input or output of a model."""

    name: str = Field(description="Signature name: the transformed feature for an input, the output's name for an output.")
    shape: tuple[int | None, ...] = Field(description="Dimensions, the batch first; None where any size goes.")
    dtype: str = Field(description="NumPy name of the element type, for example float32 or int8.")
    scale: float | None = Field(default=None, description="Per-tensor quantization: real = scale * (integer - zero_point).")
    zero_point: int | None = Field(default=None, description="Per-tensor quantization: the integer that stands for 0.0.")

    def fit(self, array: NDArray[Any]) -> NDArray[Any]:
        """Reshapes examples to this tensor's shape, so that a scalar feature `[n]` feeds an input `[n, 1]`.

        Args:
            array: `[n, ...]`, a value per example; the values are not touched.

        Returns:
            The same values as `[n, *shape[1:]]`.

        Raises:
            EdgeError: an example holds another number of values than the tensor takes.
        """
        each = self.shape[1:]
        if None in each or array.shape[1:] == each:
            return array
        if int(np.prod(array.shape[1:])) != int(np.prod([d or 1 for d in each])):
            raise EdgeError(
                f"feature {self.name!r}: an example has shape {tuple(array.shape[1:])}, the model's input takes {each}; "
                "give the model the features that it was trained on"
            )
        return array.reshape(array.shape[0], *each)


class Signature(Config):
    """The inputs and outputs of a model, in the model's own order."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.outputs)

    def feed(self, features: Mapping[str, NDArray[Any]], source: str = "the examples") -> dict[str, NDArray[Any]]:
        """Picks the model's inputs out of a batch of features and fits each to its input's shape.

        Args:
            features: a batch, `[n, ...]` each, by feature name; may hold more than the model takes.
            source: what to call the batch in an error.

        Raises:
            EdgeError: an input has no feature of its name, or a feature doesn't fit its input.
        """
        missing = [name for name in self.input_names if name not in features]
        if missing:
            raise EdgeError(
                f"{source}: no feature {', '.join(map(repr, missing))}, which the model takes; there are "
                f"{', '.join(map(repr, sorted(features)))}; inputs must be named as the transformed features"
            )
        return {spec.name: spec.fit(features[spec.name]) for spec in self.inputs}
