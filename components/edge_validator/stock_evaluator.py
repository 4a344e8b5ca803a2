"""Our prediction step in TFX's stock Evaluator.

    evaluator = Evaluator(
        examples=transform.outputs["transformed_examples"],
        schema=transform.outputs["post_transform_schema"],
        model=exporter.outputs["model"],
        baseline_model=trainer.outputs["model"],
        eval_config=eval_config,
        module_path="tfx_edge.components.edge_validator.stock_evaluator",
    )

The stock Evaluator then takes a float SavedModel beside a flatbuffer, quantizes inputs rightly, and fails on a missing feature.
What EdgeValidator has besides - a gate that fails closed, statistics, budgets, targets, a report - it hasn't.

In the EvalConfig give each ModelSpec `model_type: "tf_generic"`, the flatbuffer's too, and in a pipeline with a baseline
`is_baseline` on one. `signature_name` names the signature to run.
"""

import posixpath
from collections.abc import Sequence
from typing import Any

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.extractors import extractor
from tfx.dsl.io import fileio

from tfx_edge.components.edge_model_files import FLATBUFFER
from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE
from tfx_edge.components.edge_validator.extractor import predict_extractor
from tfx_edge.components.edge_validator.model_pair import Models
from tfx_edge.schemas import EdgeError


def EdgeEvaluatorExtractors(eval_shared_model: Any, eval_config: Any, tensor_adapter_config: Any = None) -> list[extractor.Extractor]:
    """TFMA's default extractors with our prediction step, for `custom_extractors` of TFX's Evaluator.

    Args:
        eval_shared_model: the candidate's, or a list of the candidate's and the baseline's.
        eval_config: the Evaluator's; each of its models has the type `tf_generic`.
        tensor_adapter_config: of the examples' schema; without one the features' shapes are unknown.

    Raises:
        EdgeError: a model's type isn't `tf_generic`, there is no candidate with a flatbuffer, or the Evaluator has no schema.
    """
    if tensor_adapter_config is None:
        raise EdgeError(
            "the Evaluator has no schema, so the features' shapes are unknown; give it one, as Transform's post_transform_schema"
        )
    shared = eval_shared_model if isinstance(eval_shared_model, list) else [eval_shared_model]  # which is a tuple itself
    specs = {spec.name: spec for spec in eval_config.model_specs}
    for spec in specs.values():
        if spec.model_type != "tf_generic":
            raise EdgeError(f"model {spec.name!r} of the EvalConfig has model_type {spec.model_type!r}; give each 'tf_generic'")
    baselines = [model for model in shared if model.is_baseline]
    candidate = _single([model for model in shared if not model.is_baseline])
    models = Models(
        candidate=_flatbuffer(candidate.model_path),
        baseline=baselines[0].model_path if baselines else None,
        signature=_signature(list(specs.values())),
        outputs=None,
    )
    names = {CANDIDATE: candidate.model_name, **({BASELINE: baselines[0].model_name} if baselines else {})}
    return list(
        tfma.default_extractors(
            eval_shared_model=eval_shared_model,
            eval_config=eval_config,
            tensor_adapter_config=tensor_adapter_config,
            custom_predict_extractor=predict_extractor(models, names),
        )
    )


# The name by which TFX's Evaluator looks for it in a module.
custom_extractors = EdgeEvaluatorExtractors


def _single(candidates: Sequence[Any]) -> Any:
    if len(candidates) != 1:
        raise EdgeError(f"{len(candidates)} models that aren't the baseline, one is judged; mark the float model's ModelSpec is_baseline")
    return candidates[0]


def _flatbuffer(folder: str) -> str:
    path = posixpath.join(folder, FLATBUFFER)
    if not fileio.exists(path):
        raise EdgeError(f"no flatbuffer at {path}; give the Evaluator an edge model, as TFLiteExporter makes it")
    return path


def _signature(specs: Sequence[Any]) -> str | None:
    names = sorted({spec.signature_name for spec in specs if spec.signature_name})
    if len(names) > 1:
        raise EdgeError(f"the EvalConfig names the signatures {', '.join(names)}; give both models one of them")
    return names[0] if names else None
