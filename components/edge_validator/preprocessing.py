"""Preprocessing functions of the baseline's SavedModel, applied to the examples for both models.

TFMA calls functions that a model holds, as `tft_layer`, before it predicts with that model. A flatbuffer holds none, so both
models get what the baseline's functions give.
"""

from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.extractors import extractor, transformed_features_extractor
from tensorflow_model_analysis.proto import config_pb2

from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE
from tfx_edge.schemas import EdgeError


def preprocessing_extractors(baseline: str | None, names: Sequence[str]) -> list[extractor.Extractor]:
    """The step that adds what the functions give, for either model, to each batch of extracts; none without functions.

    Args:
        baseline: folder of the SavedModel that holds the functions.
        names: of the functions, signatures or attributes, in the order to apply them.

    Raises:
        EdgeError: there is no SavedModel to hold them.
    """
    if not names:
        return []
    if baseline is None or not tf.saved_model.contains_saved_model(baseline):
        raise EdgeError(
            f"preprocessing_function_names {', '.join(names)}: the baseline is no SavedModel, so it holds no functions; "
            "give the SavedModel as baseline, or examples that are preprocessed"
        )
    config = config_pb2.EvalConfig(
        model_specs=[config_pb2.ModelSpec(name=BASELINE, model_type="tf_generic", preprocessing_function_names=names)]
    )
    model = tfma.default_eval_shared_model(eval_saved_model_path=baseline, model_name=BASELINE, eval_config=config)
    stock = transformed_features_extractor.TransformedFeaturesExtractor(eval_config=config, eval_shared_model=model)
    return [extractor.Extractor(stage_name=stock.stage_name, ptransform=_ForBothModels(stock.ptransform))]


class _ForBothModels(beam.PTransform):
    def __init__(self, stock: beam.PTransform) -> None:
        super().__init__()
        self._stock = stock

    def expand(self, extracts: beam.PCollection) -> beam.PCollection:
        return extracts | "OfBaseline" >> self._stock | "ForBothModels" >> beam.Map(_for_both_models)


def _for_both_models(extracts: dict[str, Any]) -> dict[str, Any]:
    features = extracts[constants.TRANSFORMED_FEATURES_KEY]
    return {**extracts, constants.TRANSFORMED_FEATURES_KEY: {BASELINE: features, CANDIDATE: features}}
