"""A flatbuffer to its metric, and to how far its outputs are from the float flatbuffer's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError

Metric = Callable[[NDArray[Any]], float]


@dataclass(frozen=True)
class Measured:
    """What one pass over the examples tells of a flatbuffer.

    Attributes:
        metric: on the labels.
        noise: sum of squared errors over the sum of squared float values, of the output that the metric looks at. It orders what a
            metric in steps, such as an accuracy, finds equal.
    """

    metric: float
    noise: float


class Evaluator:
    """Measures flatbuffers of one model on the same examples."""

    def __init__(self, float_model: bytes, features: Mapping[str, NDArray[Any]], output: str, metric: Metric) -> None:
        """Predicts the examples with the float flatbuffer.

        Args:
            float_model: the float flatbuffer.
            features: `[n, ...]` each, by feature name.
            output: the output that the metric looks at.
            metric: predictions of that output, `[n, ...]`, to a number; it knows the labels.

        Raises:
            EdgeError: LiteRT can't predict, or the output takes NaN or Inf.
        """
        self._features, self._output, self._metric = features, output, metric
        self._expected = self._predict(float_model).astype(np.float64)
        self._signal = float((self._expected**2).sum()) or 1.0

    def __call__(self, flatbuffer: bytes) -> Measured:
        """Predicts the examples and measures.

        Raises:
            EdgeError: LiteRT can't predict, or the output takes NaN or Inf; and what the metric raises.
        """
        predictions = self._predict(flatbuffer)
        error = float(((predictions - self._expected) ** 2).sum())
        return Measured(metric=self._metric(predictions), noise=error / self._signal)

    def _predict(self, flatbuffer: bytes) -> NDArray[Any]:
        predictions = Runner(flatbuffer)(self._features)[self._output]
        if not np.isfinite(predictions).all():
            raise EdgeError(f"output {self._output!r} takes NaN or Inf on the search's examples; mend the feature or the weight behind it")
        return predictions
