"""Annotate, train with rounding emulated, count."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

import tensorflow as tf
import tensorflow_model_optimization as tfmot
import tf_keras
from numpy.typing import NDArray
from tensorflow_model_optimization.python.core.quantization.keras.default_8bit.default_8bit_quantize_configs import (
    Default8BitOutputQuantizeConfig,
)
from tensorflow_model_optimization.python.core.quantization.keras.quantize_wrapper import QuantizeWrapper

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.fine_tuning import count_steps, fine_tune, input_batches
from tfx_edge.optimize.finite import check_trained
from tfx_edge.optimize.held_patterns import holds
from tfx_edge.optimize.held_patterns import kernels as kernels_of
from tfx_edge.optimize.model_copy import compile_like, copy_model
from tfx_edge.optimize.qat.folding import fold_norms
from tfx_edge.optimize.qat.preserve import Kept, kept
from tfx_edge.optimize.qat.scheme import EdgeScheme, OneRange
from tfx_edge.optimize.qat.selection import Choice, choose_layers, takes_range
from tfx_edge.optimize.qat.splitting import split_separable
from tfx_edge.optimize.technique_inputs import check_inputs
from tfx_edge.optimize.weight_pattern import KeepPatterns, distinct_values, pattern_of
from tfx_edge.schemas import EdgeError, QatConfig, QatLayer, QatReport

_TECHNIQUES: dict[tuple[bool, bool], Literal["QAT", "PQAT", "CQAT", "PCQAT"]] = {
    (False, False): "QAT",
    (True, False): "PQAT",
    (False, True): "CQAT",
    (True, True): "PCQAT",
}


@dataclass(frozen=True)
class _Kernel:
    layer: str
    variable: tf.Variable
    before: NDArray[Any]
    kept: Kept
    by_channel: bool


def train_quantized(
    model: tf_keras.Model, dataset: tf.data.Dataset, config: QatConfig, *, validation: tf.data.Dataset | None = None
) -> tuple[tf_keras.Model, QatReport]:
    """Trains a model with the rounding of its weights and activations to int8 emulated.

    Quantization-aware training (Jacob et al. 2018, https://arxiv.org/abs/1712.05877) with tfmot's wrappers. Zeros and shared values
    of the incoming kernels stay, to the last weight.

    Args:
        model: Keras 2, functional or Sequential, inputs named as the features; stays as it is.
        dataset: one pass over the examples, one at a time, as `fine_tune` takes it.
        config: which layers, what to keep, and how the fine-tuning goes.
        validation: examples that aren't trained on, for early stopping, as `dataset`; see `fine_tune`.

    Returns:
        A model that emulates int8, its outputs named as the given one's and compiled as it was, for TFLiteConverter with
        `Optimize.DEFAULT`, and what was done to which layer.

    Raises:
        EdgeError: the model can't be quantized, a pattern matches nothing, the model's weights aren't finite, or the examples
            don't fit.
    """
    check_inputs(model, dataset, validation)
    tf_keras.utils.set_random_seed(config.fine_tuning.seed)
    copy = copy_model(model)  # a failed attempt of tfmot's may leave layers changed
    _require_names(copy)
    choices = choose_layers(copy, config)
    count_steps(dataset, config.fine_tuning)  # an empty dataset is an error before the model is rebuilt
    separable = [c.layer for c in choices if c.quantized and c.type == "SeparableConv2D"]
    plain = split_separable(fold_norms(copy, _behind_dense(copy, choices)), separable)
    quantized = _annotated(plain, choices, {c.layer for c in choices if c.quantized} | {f"{name}_depthwise" for name in separable}, config)
    if config.freeze_batch_norm:
        for layer in quantized.layers:
            if isinstance(getattr(layer, "layer", layer), tf_keras.layers.BatchNormalization):
                layer.trainable = False
    _keep_frozen(quantized)
    kernels = tuple(_kernels(quantized, config))
    patterns = [(k.variable, pattern_of(k.before, zeros="sparsity" in k.kept, shared="clusters" in k.kept)) for k in kernels if k.kept]
    fine_tune(quantized, dataset, config.fine_tuning, compiled_like=model, callbacks=[KeepPatterns(patterns)], validation=validation)
    _refresh_ranges(quantized)
    check_trained(quantized.weights, f"model {model.name!r}, quantized", config.fine_tuning)
    compile_like(quantized, model, input_batches(model, dataset, config.fine_tuning).take(1))
    return quantized, _report(choices, kernels, _negated(quantized), config)


def _require_names(model: tf_keras.Model) -> None:
    """Tfmot finds layers by the names in their configs, and the config that Keras makes up for a layer without get_config has none."""
    for layer in model.layers:
        if "name" not in layer.get_config():
            raise EdgeError(
                f"model {model.name!r}: the config of layer {layer.name!r} ({type(layer).__name__}) has no name, by which "
                "quantization-aware training finds it; give the class a get_config that returns {**super().get_config(), ...}"
            )


def _behind_dense(copy: tf_keras.Model, choices: Sequence[Choice]) -> list[str]:
    norms = [copy.get_layer(c.layer) for c in choices if c.quantized and c.type == "BatchNormalization"]
    return [norm.name for norm in norms if isinstance(norm.inbound_nodes[0].inbound_layers, tf_keras.layers.Dense)]


def _annotated(copy: tf_keras.Model, choices: Sequence[Choice], chosen: Set[str], config: QatConfig) -> tf_keras.Model:
    one_range = {layer.name for layer in copy.layers if layer.name in chosen and _takes_one_range(layer, config)}

    feeding = {
        layer.name
        for layer in copy.layers
        if layer.name not in chosen and any(node.outbound_layer.name in chosen for node in layer.outbound_nodes) and takes_range(layer)
    } - set(copy.input_names)

    def annotate(layer: tf_keras.layers.Layer) -> tf_keras.layers.Layer:
        if layer.name in feeding:  # without a range at its input the converter makes a float layer of a quantized one
            return tfmot.quantization.keras.quantize_annotate_layer(layer, Default8BitOutputQuantizeConfig())
        return tfmot.quantization.keras.quantize_annotate_layer(layer) if layer.name in chosen else layer

    kinds = {type(layer).__name__: type(layer) for layer in copy.layers}  # tfmot makes layers again from their configs
    try:
        annotated = tf_keras.models.clone_model(copy, clone_function=annotate)
        with tfmot.quantization.keras.quantize_scope(), tf_keras.utils.custom_object_scope(kinds):
            # Without a prefix the outputs, which Keras names by their layers, keep the names that a gate maps them by.
            return tfmot.quantization.keras.quantize_apply(annotated, EdgeScheme(one_range), quantized_layer_name_prefix="")
    except Exception as error:  # tfmot raises anything on a model that it can't take apart
        left = ", ".join(f"{c.layer} ({c.type})" for c in choices if not c.quantized) or "none"
        raise EdgeError(
            f"model {copy.name!r}: tfmot can't quantize it ({one_line(error)}); select fewer layers with QatConfig.layers, or "
            f"rewrite those that aren't quantized: {left}"
        ) from error


def _takes_one_range(layer: tf_keras.layers.Layer, config: QatConfig) -> bool:
    """Whether the scheme's quantizer of the layer's kernel is replaced, see `scheme`."""
    if type(layer) is not tf_keras.layers.Conv2D:  # tfmot has other quantizers for its subclasses
        return False
    kernel = layer.kernel.numpy()
    return "clusters" in kept(kernel, config) and holds(kernel).one_scale


def _wrappers(model: tf_keras.Model) -> Iterator[QuantizeWrapper]:
    yield from (layer for layer in model.layers if isinstance(layer, QuantizeWrapper))


def _keep_frozen(model: tf_keras.Model) -> None:
    """Takes the kernels of frozen layers from training, which tfmot's wrapper adds to it whatever the layer says."""
    for wrapper in _wrappers(model):
        if not wrapper.layer.trainable:
            wrapper._non_trainable_weights.extend(wrapper._trainable_weights)
            wrapper._trainable_weights.clear()


def _kernels(model: tf_keras.Model, config: QatConfig) -> Iterator[_Kernel]:
    """The kernels of emulated layers, then those of all others, which keep what they hold just so."""
    emulated: set[int] = set()
    for wrapper in _wrappers(model):
        for variable, quantizer, _ in wrapper._weight_vars:  # tfmot tells it nowhere else
            values = variable.numpy()
            by_channel = bool(quantizer.per_axis) and not isinstance(quantizer, OneRange)
            emulated.add(id(variable))
            yield _Kernel(wrapper.layer.name, variable, values, kept(values, config), by_channel)
    for layer in model.layers:
        for variable in kernels_of(layer):
            if id(variable) not in emulated:
                values = variable.numpy()
                yield _Kernel(getattr(layer, "layer", layer).name, variable, values, kept(values, config), by_channel=False)


def _refresh_ranges(model: tf_keras.Model) -> None:
    """Takes the ranges of the weights as they are: those in the model are of the weights before the last step."""
    for wrapper in _wrappers(model):
        for variable, quantizer, ranges in wrapper._weight_vars:
            quantizer(variable, True, weights=ranges)


def _negated(model: tf_keras.Model) -> set[str]:
    """Layers of which some output channels are negated when the converter folds the BatchNormalization behind them."""
    found = set()
    for wrapper in _wrappers(model):
        following = (getattr(node.outbound_layer, "layer", node.outbound_layer) for node in wrapper.outbound_nodes)
        norms = [layer for layer in following if isinstance(layer, tf_keras.layers.BatchNormalization) and layer.scale]
        if any(bool((norm.gamma.numpy() < 0).any()) for norm in norms):
            found.add(wrapper.layer.name)
    return found


def _report(choices: Sequence[Choice], kernels: Sequence[_Kernel], negated: Set[str], config: QatConfig) -> QatReport:
    emulated = {choice.layer for choice in choices if choice.quantized}
    kernels = [replace(kernel, by_channel=kernel.by_channel or kernel.layer in negated) for kernel in kernels]
    kinds = {kind for kernel in kernels if kernel.layer in emulated for kind in kernel.kept}
    return QatReport(
        config=config,
        technique=_TECHNIQUES["sparsity" in kinds, "clusters" in kinds],
        layers=tuple(_layer(choice, [k for k in kernels if k.layer == choice.layer]) for choice in choices),
    )


def _layer(choice: Choice, kernels: Sequence[_Kernel]) -> QatLayer:
    about = QatLayer(layer=choice.layer, type=choice.type, emulated=choice.quantized, reason=choice.reason)
    if not kernels:
        return about
    after = [kernel.variable.numpy() for kernel in kernels]
    return about.model_copy(
        update={
            "kept": tuple(kind for kind in ("sparsity", "clusters") if any(kind in kernel.kept for kernel in kernels)),
            "zeros_before": sum(int((kernel.before == 0).sum()) for kernel in kernels),
            "zeros": sum(int((values == 0).sum()) for values in after),
            "values_before": max(distinct_values(kernel.before, kernel.by_channel) for kernel in kernels),
            "values": max(distinct_values(v, k.by_channel) for v, k in zip(after, kernels, strict=True)),
            "by_channel": any(kernel.by_channel for kernel in kernels),
        }
    )
