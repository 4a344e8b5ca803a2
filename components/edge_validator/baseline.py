"""The float model that a candidate is measured against: a SavedModel in any form that a Trainer writes, or a float flatbuffer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from tfx.dsl.io import fileio

from tfx_edge.components.documents import read_bytes
from tfx_edge.components.edge_model_files import FLATBUFFER
from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.litert.inspect import quantized_tensors
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.schemas import EdgeError, Signature


@dataclass(frozen=True)
class Baseline:
    """A loaded baseline.

    Attributes:
        signature: inputs, named as the features, and outputs.
        predict: a batch of features `[n, ...]` by name to the outputs `[n, ...]` by name.
    """

    signature: Signature
    predict: Callable[[Mapping[str, NDArray[Any]]], dict[str, NDArray[Any]]]


def load_baseline(path: str, transform_graph: str | None, signature: str | None = None, num_threads: int = 1) -> Baseline:
    """Loads a float model.

    Args:
        path: folder that holds a SavedModel, or a flatbuffer named `tflite`.
        transform_graph: folder of the TransformGraph artifact, where there is one.
        signature: the signature to take; None: the default one.
        num_threads: for a flatbuffer.

    Raises:
        EdgeError: it can't be loaded, or the flatbuffer is a quantized one.
    """
    flatbuffer = _flatbuffer(path)
    if flatbuffer is None:
        model = load_float_model(path, transform_graph, signature=signature, function_only=True)
        return Baseline(model.signature, model.predict)
    runner = Runner(flatbuffer, num_threads=num_threads, signature=signature, name="the baseline's flatbuffer")
    quantized = quantized_tensors(flatbuffer)
    if quantized:
        raise EdgeError(f"the baseline's flatbuffer is quantized, in tensor {quantized[0]!r}; give the float model that it was made from")
    return Baseline(runner.signature, runner)


def float_flatbuffer(path: str, transform_graph: str | None, signature: str | None = None) -> bytes:
    """The baseline as a float flatbuffer: the file itself, or the SavedModel converted (about 5 s).

    Raises:
        EdgeError: it can't be loaded or converted.
    """
    flatbuffer = _flatbuffer(path)
    if flatbuffer is not None:
        return flatbuffer
    return convert_model(load_float_model(path, transform_graph, signature=signature), "the baseline")


def _flatbuffer(path: str) -> bytes | None:
    file = f"{path}/{FLATBUFFER}"
    return read_bytes(file) if fileio.exists(file) else None
