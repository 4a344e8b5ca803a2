"""Reading tensors inside a model while it runs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.quantization import dequantize
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError

_BATCH = 32  # a power of two, as the steps are in which Runner cuts large examples


def take(examples: Mapping[str, NDArray[Any]], count: int) -> dict[str, NDArray[Any]]:
    """The first examples, `count` at most.

    Raises:
        EdgeError: there are none.
    """
    if min((len(values) for values in examples.values()), default=0) == 0:
        raise EdgeError("corrections: no examples; give calibration data with at least one")
    return {name: values[:count] for name, values in examples.items()}


def batches(
    model: bytes, examples: Mapping[str, NDArray[Any]], wanted: Iterable[int], name: str
) -> Iterator[dict[int, NDArray[np.float32]]]:
    """Runs a model and gives tensors of its main graph, batch by batch, as the real values that they stand for.

    Args:
        model: a flatbuffer, float or quantized.
        examples: `[n, ...]` by feature name, n at least 1. They run in powers of two, and a model that is fixed to a batch leaves
            out what doesn't fill one: a row that only fills up a step would count twice.
        wanted: indices of tensors.
        name: what to call the model in an error.

    Raises:
        EdgeError: LiteRT can't run it on the examples.
    """
    described = inspect.parse(model).subgraphs[0].tensors
    indices = sorted(set(wanted))
    steps: list[dict[int, NDArray[np.float32]]] = []

    def keep(interpreter: Interpreter) -> None:
        steps.append({index: _real(interpreter.get_tensor(index), described[index].quantization) for index in indices})

    runner = Runner(model, name=name, observe=keep)
    count = min(len(values) for values in examples.values())
    at = 0
    while at < count:
        size = runner.batch_size or min(_BATCH, 1 << ((count - at).bit_length() - 1))
        if at > 0 and count < at + size:
            break
        runner({feature: values[at : at + size] for feature, values in examples.items()})
        yield from steps
        steps.clear()
        at += size


def _real(values: NDArray[Any], quantization: Any) -> NDArray[np.float32]:
    if values.dtype.kind not in "iu" or quantization is None or quantization.scale is None or len(quantization.scale) != 1:
        return values.astype(np.float32, copy=False)
    return dequantize(values, float(quantization.scale[0]), int(quantization.zeroPoint[0]))
