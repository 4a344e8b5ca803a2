"""litert-quantizer: recipes and ranges in, quantized flatbuffer out, in milliseconds and without TensorFlow."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import numpy.typing  # litert-quantizer uses it without importing it, which fails on NumPy 1

from tfx_edge.litert import inspect
from tfx_edge.litert.activations import activations
from tfx_edge.litert.backends.hybrid import quantize_left_weights
from tfx_edge.litert.backends.wiring import Outputs, check_wiring, mend_wiring, outputs
from tfx_edge.litert.finish import finish
from tfx_edge.litert.packing import pack
from tfx_edge.schemas import EdgeError, QuantizationConfig, TensorRange, TensorRanges

Statistics = dict[str, dict[str, np.ndarray[Any, Any]]]


def quantize(float_model: bytes, config: QuantizationConfig, recipe: Sequence[dict[str, Any]], statistics: Statistics | None) -> bytes:
    """Quantizes a float flatbuffer.

    Args:
        float_model: as `litert.convert` gives it.
        config: which the recipe is of.
        recipe: as `recipes.recipe` gives it; not empty.
        statistics: as `statistics` gives them, for recipes that quantize activations.

    Raises:
        EdgeError: litert-quantizer can't do what the recipe asks.
    """
    from litert_quantizer import quantizer  # half a second, and not part of the light base

    with one_line_errors():
        result = quantizer.Quantizer(with_unique_names(float_model), list(recipe)).quantize(
            statistics, enable_progress_bar=False, enable_progress_report=False
        )
    return completed(bytes(result.quantized_model), outputs(float_model), config)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turns what litert-quantizer raises into one line, without its warnings.

    Raises:
        EdgeError: it raised anything.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it opens an interpreter that keeps all tensors, and LiteRT warns of the memory
            yield
    except (ArithmeticError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError, re.error) as error:
        raise EdgeError(f"litert-quantizer can't quantize the model: {' '.join(str(error).split()) or type(error).__name__}") from error


def completed(quantized: bytes, before: Sequence[Outputs], config: QuantizationConfig) -> bytes:
    """What litert-quantizer made of a float flatbuffer, mended, and with the weights quantized that it left in float.

    Args:
        quantized: what it wrote.
        before: the float flatbuffer's outputs, as `wiring.outputs` gives them.
        config: what was asked.

    Raises:
        EdgeError: an operator would get a type that LiteRT has no kernel for.
    """
    parsed = inspect.parse(quantized)
    mend_wiring(parsed, before, config.io_type)
    quantize_left_weights(parsed, config)
    finish(parsed)
    check_wiring(parsed)
    return pack(parsed)


def with_unique_names(model: bytes) -> bytes:
    """Gives the tensors of a flatbuffer names of their own, without which litert-quantizer refuses it.

    The graphs of a loop (WHILE) and the main one share names. The first tensor keeps its name, so those of the main graph do; `;2`
    behind the name of the next reads as another output to litert-quantizer and to rules that end a name so.

    Returns:
        The same bytes where the names are unique.
    """
    parsed = inspect.parse(model)
    names = [tensor.name for graph in parsed.subgraphs for tensor in graph.tensors]
    if len(set(names)) == len(names):
        return model
    taken = set(names)
    seen: set[bytes] = set()
    for graph in parsed.subgraphs:
        for tensor in graph.tensors:
            if tensor.name in seen:
                tensor.name = next(name for number in count(2) if (name := b"%b;%d" % (tensor.name, number)) not in taken)
                taken.add(tensor.name)
            seen.add(tensor.name)
    return pack(parsed)


def statistics(float_model: bytes, ranges: TensorRanges | None) -> Statistics:
    """Ranges as litert-quantizer takes them: arrays of one element, with the dimensions of the tensor.

    Raises:
        EdgeError: no ranges, none of a tensor, or a model with control flow, whose branches have none.
    """
    graph = _only_graph(float_model)
    found = {}
    for index, usable in usable_ranges(float_model, ranges).items():
        shape = graph.tensors[index].shape
        one = (1,) * (0 if shape is None else len(shape))
        name = graph.tensors[index].name.decode()
        found[name] = {"min": np.full(one, usable.min, np.float32), "max": np.full(one, usable.max, np.float32)}
    return found


def usable_ranges(float_model: bytes, ranges: TensorRanges | None) -> dict[int, TensorRange]:
    """The range of every float activation by the index of its tensor, none of no width.

    Raises:
        EdgeError: as `statistics`.
    """
    if ranges is None or ranges.examples == 0:
        raise EdgeError("scheme 'int8' or 'int16x8' without calibrated ranges; give Quantizer calibration_data")
    graph = _only_graph(float_model)
    tensors = activations(float_model)
    missing = [name for name in tensors if name not in ranges.ranges]
    if missing:
        raise EdgeError(
            f"the ranges have none for tensor {missing[0]!r} ({len(missing)} missing in all); run Quantizer on this model again"
        )
    usable = _without_zero_ranges(graph, ranges)
    return {index: usable[name] for name, index in tensors.items()}


def _only_graph(float_model: bytes) -> Any:
    graphs = inspect.parse(float_model).subgraphs
    if len(graphs) > 1:
        raise EdgeError(
            "scheme 'int8' or 'int16x8' for a model with control flow (IF, WHILE, as a GRU becomes): ranges inside its branches can't be "
            "calibrated; use 'dynamic_range', which quantizes the weights in them, or unroll the layer"
        )
    return graphs[0]


def _without_zero_ranges(graph: Any, ranges: TensorRanges) -> dict[str, TensorRange]:
    """Gives a tensor that was 0 on all calibration data (a dead layer, an unused feature) the range of what it is computed from.

    A range of no width would give a scale so small that XNNPACK refuses the whole model.
    """
    usable = {name: r for name, r in ranges.ranges.items() if r.min != 0 or r.max != 0}
    names = [tensor.name.decode() for tensor in graph.tensors]
    for op in graph.operators:
        source = next((usable[names[i]] for i in op.inputs if i >= 0 and names[i] in usable), TensorRange(min=0, max=1))
        for index in op.outputs:
            usable.setdefault(names[index], source)
    return {name: usable.get(name, TensorRange(min=0, max=1)) for name in ranges.ranges}
