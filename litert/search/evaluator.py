"""A flatbuffer to its metric, and to how far its outputs are from the float flatbuffer's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError

_LOST = 0.5  # an error of half the standard deviation: a quarter of what the value tells

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
        self._outputs = Runner(float_model)(features)
        self._expected = self._finite(self._outputs).astype(np.float64)
        self._signal = float((self._expected**2).sum()) or 1.0

    def __call__(self, flatbuffer: bytes) -> Measured:
        """Predicts the examples and measures.

        Raises:
            EdgeError: LiteRT can't predict, or the output takes NaN or Inf; and what the metric raises.
        """
        predictions = self._predict(flatbuffer)
        error = float(((predictions - self._expected) ** 2).sum())
        return Measured(metric=self._metric(predictions), noise=error / self._signal)

    def unwatched(self, flatbuffer: bytes) -> str | None:
        """A warning of the value that suffered most among the outputs that the metric doesn't look at, if one suffered.

        Raises:
            EdgeError: LiteRT can't predict.
        """
        predictions = Runner(flatbuffer)(self._features)
        lost = {name: _lost(self._outputs[name], now) for name, now in predictions.items() if name != self._output}
        name = max(lost, key=lambda output: lost[output].max(), default=None)
        if name is None or lost[name].max() <= _LOST:
            return None
        worst = int(lost[name].argmax())
        return (
            f"output {name!r}, at which the accuracy target doesn't look: the error of its value {worst} is {lost[name][worst]:.0%} of the "
            "value's standard deviation; make it the threshold's output in another run, or hold it in the gate"
        )

    def _predict(self, flatbuffer: bytes) -> NDArray[Any]:
        return self._finite(Runner(flatbuffer)(self._features))

    def _finite(self, outputs: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        predictions = outputs[self._output]
        if not np.isfinite(predictions).all():
            raise EdgeError(f"output {self._output!r} takes NaN or Inf on the search's examples; mend the feature or the weight behind it")
        return predictions


def _lost(expected: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Root mean squared error over the standard deviation, `[values]` along the last axis; 0 for what isn't numbers or never changes."""
    if expected.dtype.kind not in "fiu":
        return np.zeros(1)
    was, now = (a.reshape(-1, a.shape[-1] if a.ndim > 1 else 1).astype(np.float64) for a in (expected, predicted))
    deviation = was.std(axis=0)
    error = np.sqrt(((now - was) ** 2).mean(axis=0))
    return np.where(deviation > 0, error / np.where(deviation > 0, deviation, 1), 0)
