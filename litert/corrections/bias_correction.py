"""Empirical bias correction: the mean of each layer's output is what it was in float.

Rounding shifts the mean of a layer's output, since its inputs aren't centred: by W' E[x'] + b' - W E[x] - b with quantization
marked by a prime. The output is linear in the input, so the means of the inputs are enough, and the fused activation, which
hides the sum in the quantized model, doesn't matter. Layer by layer, so that each is corrected behind those before it: Nagel et
al. 2019, appendix D, https://arxiv.org/abs/1906.04721.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.constants import read_constants, replace_constants
from tfx_edge.litert.corrections.operators import Operator, own_biases, pairs, weighted_operators
from tfx_edge.litert.corrections.products import product, to_matrix, to_rows
from tfx_edge.litert.corrections.quantized import integers, real_values
from tfx_edge.litert.corrections.tensors import batches, take
from tfx_edge.schemas.corrections import BiasCorrection, CorrectedLayer

Quantize = Callable[[bytes], bytes]


def correct_bias(
    float_model: bytes,
    quantize: Quantize,
    examples: Mapping[str, NDArray[Any]],
    config: BiasCorrection,
    reference: bytes | None = None,
) -> tuple[bytes, tuple[CorrectedLayer, ...]]:
    """Takes from each layer's bias what quantization adds to its mean output.

    Args:
        float_model: the float flatbuffer whose biases are corrected.
        quantize: makes a quantized flatbuffer of a float one, with the ranges of `reference`, the same for each call.
        examples: `[n, ...]` by feature name.
        config: how many examples.
        reference: a float flatbuffer with the means to keep; None for `float_model` itself.

    Returns:
        The flatbuffer with other biases, and what was done to each weighted operator, or why nothing.

    Raises:
        EdgeError: there are no examples, or they don't fit the model.
    """
    examples = take(examples, config.examples)
    model = own_biases(float_model)
    found, left = weighted_operators(inspect.parse(model))
    wanted = _means(model if reference is None else own_biases(reference), found, examples, range(len(found)))
    first: dict[int, NDArray[np.float64]] = {}
    report = [CorrectedLayer(kind=config.kind, op=op, tensor=name, skipped=why) for (op, name), why in left.items()]
    quantized = quantize(model)
    before = _shifts(quantized, found, examples, wanted, range(len(found)))
    for number, op in enumerate(found):
        if number not in before:
            continue
        first[number] = before[number]
        if op.bias is None:
            continue
        shift = _shifts(quantized, found, examples, wanted, [number])[number]
        bias = read_constants(inspect.parse(model))[op.bias]
        model = replace_constants(model, {op.bias: (bias - shift).astype(np.float32)})
        quantized = quantize(model)
    after = _shifts(quantized, found, examples, wanted, range(len(found)))
    for number, op in enumerate(found):
        why = "it stays float, or its weights have no scales that can be read" if number not in first else None
        if why is None and op.bias is None:
            why = "its bias is computed"
        report.append(
            CorrectedLayer(
                kind=config.kind,
                op=op.kind,
                tensor=op.name,
                before=None if why else float(np.abs(first[number]).mean()),
                after=None if why else float(np.abs(after[number]).mean()),
                skipped=why,
            )
        )
    return model, tuple(report)


def _shifts(
    quantized: bytes, found: list[Operator], examples: Mapping[str, NDArray[Any]], wanted: Mapping[int, NDArray[Any]], which: Iterable[int]
) -> dict[int, NDArray[np.float64]]:
    """What quantization adds to the mean output `[outputs]` of some layers; of those with integer weights alone."""
    parsed = inspect.parse(quantized)
    twins = pairs(found, parsed)
    rounded = [n for n in which if integers(parsed, twins[n].weights) is not None]
    have = _means(quantized, twins, examples, rounded)
    return {number: have[number] - wanted[number] for number in have}


def _means(
    model: bytes, found: list[Operator], examples: Mapping[str, NDArray[Any]], which: Iterable[int]
) -> dict[int, NDArray[np.float64]]:
    """The mean output `[outputs]` of layers before their activation, over examples and positions."""
    parsed = inspect.parse(model)
    weights = {n: w for n in which if (w := real_values(parsed, found[n].weights)) is not None}
    sums: dict[int, NDArray[np.float64] | float] = dict.fromkeys(weights, 0.0)
    counts = dict.fromkeys(weights, 0)
    for batch in batches(model, examples, (found[n].input for n in weights), "the model whose biases are corrected"):
        for number in weights:
            values = batch[found[number].input]
            if found[number].kind == "FULLY_CONNECTED":  # the batch may stand on any of its axes
                values = values.reshape(-1, weights[number].shape[1])
            sums[number] += values.sum(axis=0, keepdims=True, dtype=np.float64)
            counts[number] += len(values)
    means = {}
    for number, w in weights.items():
        op, mean = found[number], np.asarray(sums[number] / counts[number])
        patches = to_rows(op, mean, w.shape).mean(axis=1, keepdims=True)
        matrix = to_matrix(op, w.astype(np.float64), mean.shape[-1])
        bias = 0.0 if op.bias is None else real_values(parsed, op.bias)
        means[number] = product(patches, matrix).reshape(-1) + (0.0 if bias is None else bias)
    return means
