"""The model pair as TFMA's prediction step.

TFMA's own extractors refuse a SavedModel beside a flatbuffer, fill a missing feature with -1, and wrap int8 inputs that
should saturate. This one takes the place of them through TFMA's `custom_predict_extractor`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from apache_beam.utils import shared
from numpy.typing import NDArray
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.extractors import extractor

from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE
from tfx_edge.components.edge_validator.model_pair import ModelPair, Models

_STAGE = "PredictBaselineAndCandidate"


def predict_extractor(models: Models, names: Mapping[str, str] | None = None) -> extractor.Extractor:
    """Adds the predictions of both models, by model name, to each batch of extracts.

    The extracts must hold the batch's features as arrays, and where preprocessing functions ran, what they gave. A worker
    process loads the models once.

    Args:
        models: the models, where every worker can read them.
        names: what to call `baseline` and `candidate` in the extracts; None: just so.
    """
    return extractor.Extractor(stage_name=_STAGE, ptransform=beam.ParDo(_Predict(models, names or {})))


class _Predict(beam.DoFn):
    def __init__(self, models: Models, names: Mapping[str, str]) -> None:
        self._models = models
        self._names = {BASELINE: names.get(BASELINE, BASELINE), CANDIDATE: names.get(CANDIDATE, CANDIDATE)}
        self._shared = shared.Shared()

    def setup(self) -> None:
        self._pair: ModelPair = self._shared.acquire(lambda: ModelPair(self._models))

    def process(self, extracts: dict[str, Any]) -> Iterator[dict[str, Any]]:
        predictions = self._pair.predict(model_features(extracts))
        named = {self._names[model]: values for model, values in predictions.items()}
        # A single model's predictions stand alone, without its name.
        yield {**extracts, tfma.PREDICTIONS_KEY: named if len(named) > 1 else predictions[CANDIDATE]}


def model_features(extracts: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """What the models get, `[n, ...]` each by name: the dense features, and in their place those that preprocessing functions gave."""
    preprocessed = (extracts.get(constants.TRANSFORMED_FEATURES_KEY) or {}).get(BASELINE, {})
    every = {**extracts[tfma.FEATURES_KEY], **preprocessed}
    return {name: value for name, value in every.items() if isinstance(value, np.ndarray)}
