"""What a flatbuffer costs, how good it is beside the float model, and what that makes of a trial."""

import math
from dataclasses import dataclass

import tensorflow as tf

from tfx_edge.components.edge_validator.verdict import Measured, keeps_drop
from tfx_edge.components.keras_metrics import make_metric, output_name, update, value
from tfx_edge.litert.inspect import gzip_size
from tfx_edge.litert.latency import latency_ratio
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import SearchConfig, Threshold, TrialResult

_BATCH = 256  # examples predicted at once


@dataclass(frozen=True)
class Yardstick:
    """Measures flatbuffers on the same examples.

    Attributes:
        config: what is measured.
        dataset: one pass over `(features, label)`, one example at a time; read anew for each flatbuffer, so memory stays flat.
        float_model: the float flatbuffer.
    """

    config: SearchConfig
    dataset: tf.data.Dataset
    float_model: bytes

    def metric(self, flatbuffer: bytes) -> float:
        """The threshold's metric over all examples.

        Raises:
            EdgeError: LiteRT can't predict, the metric doesn't take these labels and predictions, or is no number.
        """
        runner, metric = Runner(flatbuffer), make_metric(self.config.threshold)
        output = output_name(runner.signature.output_names, self.config.threshold)
        for features, label in self.dataset.batch(_BATCH).as_numpy_iterator():
            predictions = runner(features)[output]
            update(metric, self.config.threshold, label, predictions)
        return value(metric, self.config.threshold)

    def latency_ratio(self, flatbuffer: bytes) -> float | None:
        """Of one prediction to the float flatbuffer's, where that is the objective."""
        if self.config.objective != "latency_ratio":
            return None
        if flatbuffer == self.float_model:
            return 1.0
        features, _ = next(self.dataset.batch(1).as_numpy_iterator())
        return latency_ratio(flatbuffer, self.float_model, features, num_threads=self.config.num_threads).ratio

    def measure(self, flatbuffer: bytes) -> TrialResult:
        """Costs and metric; what they are beside the float model says `judge`."""
        return TrialResult(
            values={},
            size_bytes=len(flatbuffer),
            gzip_bytes=gzip_size(flatbuffer),
            latency_ratio=self.latency_ratio(flatbuffer),
            metric=self.metric(flatbuffer),
            seconds=0,
        )


def judge(measured: TrialResult, reference: TrialResult, threshold: Threshold) -> TrialResult:
    """Adds what a trial lost against the float model, and whether it may win."""
    if measured.metric is None or reference.metric is None or threshold.max_drop is None:
        raise ValueError("nothing was measured")
    drop = (reference.metric - measured.metric) * (1 if threshold.rises else -1)
    feasible = keeps_drop(threshold, Measured(reference.metric, measured.metric))
    return measured.model_copy(update={"drop": drop, "feasible": feasible})


def score(result: TrialResult, reference: TrialResult, config: SearchConfig) -> float:
    """A number to minimize: below 0 by the logarithm of its cost for a trial within the budget, from 0 to 1 by its loss for any other.

    So every trial that may win comes before every one that may not. The logarithm keeps the step between them from dwarfing, in a
    Gaussian process' eyes, what trials within the budget differ by.
    """
    if result.feasible:
        share = getattr(result, config.objective) / getattr(reference, config.objective)
        return math.log(share / (1 + share))  # below 0 even where it costs more than the float model
    excess = (result.drop or 0.0) - (config.threshold.max_drop or 0.0)
    excess = max(excess / (abs(reference.metric or 0.0) or 1.0), 0.0)
    return excess / (1 + excess)
