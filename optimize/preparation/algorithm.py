"""Refuse what can't be mended, flatten, rewrite, compare."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import tf_keras
from numpy.typing import NDArray

from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.optimize.float_model.made_up_features import make_examples
from tfx_edge.optimize.graph import is_flat, rebuild
from tfx_edge.optimize.graph.names import is_nested
from tfx_edge.optimize.graph.operator import is_operator
from tfx_edge.optimize.half_precision import half_layers, policy_of
from tfx_edge.optimize.model_copy import check_kind
from tfx_edge.optimize.preparation.recurrent import LONGEST, becomes_loop, is_recurrent
from tfx_edge.optimize.preparation.refusals import refuse_impossible
from tfx_edge.optimize.preparation.rules import rule_for
from tfx_edge.schemas import EdgeError, LeftLayer, PreparationReport, Rewrite

Layer: TypeAlias = tf_keras.layers.Layer

_TOLERANCE = 1e-5  # of a value's size, and of 1 for smaller ones: what rounding in float32 costs
_HALF_TOLERANCE = 0.05  # likewise, in 16 bits: each layer rounds to 3 digits, bfloat16 to 2


def prepare(model: tf_keras.Model, examples: Mapping[str, NDArray[Any]] | None = None) -> tuple[tf_keras.Model, PreparationReport]:
    """Rewrites the layers of a model that a device or a training tool doesn't take into equal ones.

    Nested models are flattened, operators between layers wrapped, layers that compute in 16 bits brought to float32, preprocessing
    layers made of operators that LiteRT has; docs/preparation.md lists them. Nothing is trained. A prepared model needs no further
    rewrite, and the same model gives the same result.

    Args:
        model: functional or Sequential Keras 2, built; stays as it is.
        examples: `[n, ...]` each, by input name, to compare outputs on; None makes some up.

    Returns:
        The rewritten model with the same input and output names, weights and compile config (its optimizer has not stepped), or the
        given model itself where there is nothing to rewrite; and what was rewritten.

    Raises:
        EdgeError: a layer can't be brought to a device at all, a layer can't be copied, an example isn't finite, or outputs differ after
            rewriting. The text names the layers or the feature, and the cure.
    """
    check_kind(model)
    refuse_impossible(model)
    flat = model if is_flat(model) else rebuild(model)
    half = tuple(_widened(model))
    rewrites = (*_flattened(model), *half, *_ruled(flat))
    left = tuple(_left(flat))
    if not rewrites:
        return model, PreparationReport(left=left)
    prepared = rebuild(flat, _Rewriter())
    features = make_examples(flat) if examples is None else examples
    _require_finite(model, features)
    difference = _compare(model, prepared, features, rewrites, _HALF_TOLERANCE if half else _TOLERANCE)
    config = model.get_compile_config()
    if config is not None:
        prepared.compile_from_config(config)
    return prepared, PreparationReport(
        rewrites=rewrites,
        left=left,
        examples=min(len(features[name]) for name in model.input_names),
        real_examples=examples is not None,
        max_abs_difference=difference,
    )


class _Rewriter:
    """Calls a rule's layers in place of the layer's own; layers that are called several times share them."""

    def __init__(self) -> None:
        self._made: dict[int, list[Layer]] = {}

    def __call__(self, layer: Layer, inputs: Any, kwargs: dict[str, Any]) -> Any:
        rule = rule_for(layer)
        if rule is None:
            return None
        if id(layer) not in self._made:
            self._made[id(layer)] = rule.make(layer)
        *first, last = self._made[id(layer)]
        for step in first:
            inputs = step(inputs)
        outputs = last(inputs, **{k: v for k, v in kwargs.items() if k in last._call_spec.arg_names})
        if last.weights:
            last.set_weights(layer.get_weights())
        return outputs


def _flattened(model: tf_keras.Model) -> Iterator[Rewrite]:
    for layer in model.layers:
        if is_nested(layer):
            yield Rewrite(
                layer=layer.name,
                type=type(layer).__name__,
                became="its layers, side by side with the others",
                reason="training tools change single layers, not models in models",
            )
            yield from _flattened(layer)
        elif is_operator(layer):
            yield Rewrite(
                layer=layer.name, type=type(layer).__name__, became=f"Operator: {layer.symbol}", reason="tfmot doesn't take operators"
            )


def _widened(model: tf_keras.Model) -> Iterator[Rewrite]:
    for layer in half_layers(model):
        if not is_operator(layer):
            yield Rewrite(
                layer=layer.name,
                type=type(layer).__name__,
                became="itself, in float32",
                reason=f"its dtype policy {policy_of(layer)!r} computes in 16 bits, which needs Flex; its weights are float32 already",
            )


def _ruled(flat: tf_keras.Model) -> Iterator[Rewrite]:
    for layer in flat.layers:
        rule = rule_for(layer)
        if rule is not None:
            yield Rewrite(layer=layer.name, type=type(layer).__name__, became=rule.became, reason=rule.reason)


_TRAINING_ALONE = "acts while training alone; on a device it does nothing"


def _left(flat: tf_keras.Model) -> Iterator[LeftLayer]:
    for layer in flat.layers:
        reason = _why_left(layer)
        if reason:
            yield LeftLayer(layer=layer.name, type=type(layer).__name__, reason=reason)


def _why_left(layer: Layer) -> str:
    if isinstance(layer, tf_keras.Model):
        return "a subclassed model, whose layers can't be reached; rebuild it with the functional API to have them compressed"
    if isinstance(layer, tf_keras.layers.Wrapper) and isinstance(layer.layer, tf_keras.Model):
        return "holds a model, whose layers can't be reached"
    if becomes_loop(layer) and rule_for(layer) is None:
        return (
            f"recurrent over more than {LONGEST} steps, or of unknown number: becomes a loop (WHILE), which converts with a batch of one "
            "but can't be quantized; shorten the sequences, or use an LSTM without a mask"
        )
    if is_recurrent(layer) and rule_for(layer) is None:
        return "recurrent: converts with a batch of one example"
    if isinstance(layer, (tf_keras.__internal__.layers.BaseRandomLayer, tf_keras.layers.GaussianNoise, tf_keras.layers.GaussianDropout)):
        return _TRAINING_ALONE
    return ""


def _require_finite(model: tf_keras.Model, features: Mapping[str, NDArray[Any]]) -> None:
    """NaN and infinity differ from themselves after any computation, which would look like a rewrite's fault."""
    for name in model.input_names:
        values = np.asarray(features[name]) if name in features else np.zeros(0)
        bad = int(np.count_nonzero(~np.isfinite(values))) if values.dtype.kind == "f" else 0
        if bad:
            raise EdgeError(
                f"model {model.name!r}: feature {name!r} holds {bad} NaN or infinite values of {values.size} in the examples that outputs "
                "are compared on; mend the data, or fill such values in Transform's preprocessing_fn"
            )


def _compare(
    model: tf_keras.Model, prepared: tf_keras.Model, features: Mapping[str, NDArray[Any]], rewrites: tuple[Rewrite, ...], tolerance: float
) -> float:
    """The largest difference of any output; refuses one that rounding doesn't explain."""
    wanted, found = from_keras_model(model).predict(features), from_keras_model(prepared).predict(features)
    largest = 0.0
    for name, want in wanted.items():
        want = want.astype(np.float64)
        difference = np.abs(found[name] - want)
        if found[name].shape != want.shape or not np.all(difference <= tolerance * np.maximum(1.0, np.abs(want))):
            layers = ", ".join(f"{r.layer!r} ({r.type})" for r in rewrites)
            raise EdgeError(
                f"model {model.name!r}: after rewriting {layers} output {name!r} differs by {np.max(difference):.3g}; "
                "replace these layers in the model's code, and tell the authors of tfx-edge"
            )
        largest = max(largest, float(np.max(difference, initial=0.0)))
    return largest
