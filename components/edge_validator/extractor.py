"""The model pair as TFMA's prediction step.

TFMA's own extractors refuse a SavedModel beside a flatbuffer, fill a missing feature with -1, and wrap int8 inputs that
should saturate. This one takes the place of them through TFMA's `custom_predict_extractor`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from apache_beam.utils import shared
from tensorflow_model_analysis.extractors import extractor

from tfx_edge.components.edge_validator.model_pair import ModelPair, ModelPaths

_STAGE = "PredictBaselineAndCandidate"


def predict_extractor(paths: ModelPaths, time_limit_s: float, outputs: Sequence[str | None] = (None,)) -> extractor.Extractor:
    """Adds the predictions of both models, by model name, to each batch of extracts.

    The extracts must hold the batch's features as arrays. A worker process loads the models once.

    Args:
        paths: the models, where every worker can read them.
        time_limit_s: seconds that the candidate may take for its first load and batch.
        outputs: those that the thresholds are on; None is the only one of a model that has one.
    """
    return extractor.Extractor(stage_name=_STAGE, ptransform=beam.ParDo(_Predict(paths, time_limit_s, outputs)))


class _Predict(beam.DoFn):
    def __init__(self, paths: ModelPaths, time_limit_s: float, outputs: Sequence[str | None]) -> None:
        self._paths = paths
        self._time_limit_s = time_limit_s
        self._outputs = outputs
        self._shared = shared.Shared()

    def setup(self) -> None:
        self._models: ModelPair = self._shared.acquire(lambda: ModelPair(self._paths, self._time_limit_s, self._outputs))

    def process(self, extracts: dict[str, Any]) -> Iterator[dict[str, Any]]:
        features = {name: value for name, value in extracts[tfma.FEATURES_KEY].items() if isinstance(value, np.ndarray)}
        yield {**extracts, tfma.PREDICTIONS_KEY: self._models.predict(features)}
