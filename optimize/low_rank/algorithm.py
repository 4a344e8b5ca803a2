"""Factorize, then fine-tune."""

from typing import Any

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.fine_tuning import fine_tune, input_batches
from tfx_edge.optimize.finite import check_trained
from tfx_edge.optimize.frozen import way_out
from tfx_edge.optimize.graph import rebuild
from tfx_edge.optimize.held_patterns import held_patterns
from tfx_edge.optimize.low_rank.choice import Candidate, Ranks, choose_ranks, find_candidates
from tfx_edge.optimize.low_rank.layers import Factored, factored
from tfx_edge.optimize.model_copy import compile_like
from tfx_edge.optimize.technique_inputs import check_inputs
from tfx_edge.optimize.weight_pattern import KeepPatterns
from tfx_edge.schemas import EdgeError, LayerFactorization, LowRankConfig, LowRankReport


def factorize(
    model: tf_keras.Model, dataset: tf.data.Dataset, config: LowRankConfig, *, validation: tf.data.Dataset | None = None
) -> tuple[tf_keras.Model, LowRankReport]:
    """Replaces the selected layers by two or three thinner ones whose product is near to them, and trains the result.

    Dense and 1x1 Conv2D: truncated SVD. Other Conv2D: a column and a row (Jaderberg et al. 2014, https://arxiv.org/abs/1405.3866), or
    Tucker-2 (Kim et al. 2016, https://arxiv.org/abs/1511.06530).

    Args:
        model: Keras 2, functional or Sequential, inputs named as the features; stays as it is.
        dataset: one pass over the examples, one at a time, as `fine_tune` takes it.
        config: which layers, how their ranks are chosen, and how the fine-tuning goes.
        validation: examples that aren't trained on, for early stopping, as `dataset`; see `fine_tune`.

    Returns:
        A flat functional model, compiled as the given one was, and what became of each layer.

    Raises:
        EdgeError: the model can't be rebuilt, a pattern matches nothing, no layer can be factorized or saves enough, the weights
            aren't finite, or the examples don't fit.
    """
    check_inputs(model, dataset, validation)
    tf_keras.utils.set_random_seed(config.fine_tuning.seed)
    flat = rebuild(model)
    candidates = find_candidates(flat, config)
    ranks = choose_ranks(candidates, config)
    _check_any(model, candidates, ranks)
    names = {layer.name for layer in flat.layers}
    parts = {c.layer.name: factored(c, r.ranks, _free(c.layer.name, names)) for c, r in zip(candidates, ranks, strict=True) if r.ranks}

    def replace(layer: tf_keras.layers.Layer, inputs: Any, kwargs: dict[str, Any]) -> Any:
        if layer.name not in parts:
            return None
        for part in parts[layer.name].layers:
            inputs = part(inputs)
        return inputs

    thinner = rebuild(flat, replace)
    for part in parts.values():
        part.set_weights()
    report = _report(candidates, ranks, parts, config)
    held = held_patterns(thinner, {factor.name for part in parts.values() for factor in part.layers})
    fine_tune(thinner, dataset, config.fine_tuning, compiled_like=model, callbacks=[KeepPatterns(held)], validation=validation)
    compile_like(thinner, model, input_batches(model, dataset, config.fine_tuning).take(1))
    check_trained(thinner.weights, f"model {model.name!r}, factorized", config.fine_tuning)
    return thinner, report


def _check_any(model: tf_keras.Model, candidates: tuple[Candidate, ...], ranks: list[Ranks]) -> None:
    if not any(r.ranks for r in ranks):
        why = "; ".join(f"{c.layer.name}: {_reason(c, r)}" for c, r in zip(candidates, ranks, strict=True)) or "it has no weights"
        raise EdgeError(
            f"model {model.name!r}: no layer can be factorized with a saving ({why}); keep less energy, lower min_saving, or "
            f"{way_out([c.reason for c in candidates])}"
        )


def _free(name: str, taken: set[str]) -> str:
    """A prefix for the names of a layer's factors with which none of them is another layer's name."""
    prefix = name
    while {f"{prefix}_in", f"{prefix}_core"} & taken:
        prefix += "_factor"
    return prefix


def _reason(candidate: Candidate, ranks: Ranks) -> str:
    return "" if ranks.ranks else candidate.reason or "at the rank that it needs it saves too little"


def _report(candidates: tuple[Candidate, ...], ranks: list[Ranks], parts: dict[str, Factored], config: LowRankConfig) -> LowRankReport:
    layers = tuple(
        LayerFactorization(
            layer=c.layer.name,
            type=type(c.layer).__name__,
            method=c.method if r.ranks else None,
            ranks=r.ranks,
            weights=c.weights,
            weights_after=r.weights,
            macs=c.weights * c.positions,
            macs_after=r.macs,
            error=parts[c.layer.name].error if r.ranks else 0.0,
            reason=_reason(c, r),
        )
        for c, r in zip(candidates, ranks, strict=True)
    )
    return LowRankReport(config=config, layers=layers, macs=sum(x.macs for x in layers), macs_after=sum(x.macs_after for x in layers))
