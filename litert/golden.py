"""Golden vectors: inputs, and what the model makes of them here, for a device to test itself by."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.quantization import STRING
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, TensorRanges, TensorSpec

_RELATIVE = 1e-5  # of the largest value of a float output: another order of the same additions
_SLACK = 4  # times as far as LiteRT's two implementations here are from each other


def golden_vectors(
    model: bytes,
    *,
    signature: str | None = None,
    examples: Mapping[str, NDArray[Any]] | None = None,
    ranges: TensorRanges | None = None,
    runs: int = 8,
    seed: int = 0,
) -> bytes:
    """Runs a flatbuffer on a few inputs.

    The tolerance of an output is four times what lies between LiteRT's XNNPACK kernels and its plain reference kernels on the same
    inputs: a device has kernels of its own, which round elsewhere. It is at least one step of a quantized output, or 1e-5 of the
    largest value of a float one.

    Args:
        model: the flatbuffer.
        signature: the one that is run; None for `serving_default` or the only one.
        examples: `[n, ...]` real values by feature name, of which the first are taken; None makes inputs up.
        ranges: calibrated; float inputs that are made up lie within theirs, others are standard normal.
        runs: how many times the model is run, each with one batch of the size that it is fixed to, or with one example.
        seed: of what is made up.

    Returns:
        An npz file that `device.selftest` reads; the same arguments give the same bytes.

    Raises:
        EdgeError: LiteRT can't run the model, or the examples don't fit it.
    """
    runner = Runner(model, signature=signature)
    batch = runner.batch_size or 1
    made = _made_up(model, runner, ranges, runs * batch, seed) if examples is None else {n: v[: runs * batch] for n, v in examples.items()}
    raw = runner.raw_inputs(made, "the golden inputs")
    whole = len(next(iter(raw.values()))) // batch
    if whole == 0:
        raise EdgeError(f"golden vectors: fewer examples than the model's batch of {batch}; give at least {batch}")
    inputs = {name: values[: whole * batch].reshape(whole, batch, *values.shape[1:]) for name, values in raw.items()}
    key = runner.entry.signature
    outputs = _run(model, key, inputs, OpResolverType.AUTO)
    plain = _run(model, key, inputs, OpResolverType.BUILTIN_REF)
    arrays: dict[str, Any] = {"signature": np.array(key)}
    for name in sorted(inputs):
        arrays[f"input:{name}"] = inputs[name]
    for name in sorted(outputs):
        arrays[f"output:{name}"] = outputs[name]
        arrays[f"tolerance:{name}"] = np.array(_tolerance(outputs[name], plain[name]))
    content = BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _made_up(model: bytes, runner: Runner, ranges: TensorRanges | None, count: int, seed: int) -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(seed)
    graph = inspect.parse(model).subgraphs[runner.entry.subgraph]
    made = {}
    for spec in runner.signature.inputs:
        tensor = graph.tensors[runner.entry.inputs[spec.name]].name.decode()
        known = ranges.ranges.get(tensor) if ranges else None
        shape = (count, *(size or 1 for size in spec.shape[1:]))
        made[spec.name] = _values(spec, shape, (known.min, known.max) if known else None, generator)
    return made


def _values(spec: TensorSpec, shape: tuple[int, ...], known: tuple[float, float] | None, generator: np.random.Generator) -> NDArray[Any]:
    if spec.dtype == STRING:
        return np.full(shape, b"", object)
    if spec.scale is not None and spec.zero_point is not None:
        info = np.iinfo(spec.dtype)
        known = (spec.scale * (info.min - spec.zero_point), spec.scale * (info.max - spec.zero_point))
    elif np.dtype(spec.dtype).kind != "f":
        return generator.integers(0, 2, shape).astype(spec.dtype)  # an index of any table, and a truth value
    values: NDArray[Any] = generator.normal(size=shape) if known is None else generator.uniform(*known, shape)
    return values.astype(np.float32)


def _run(model: bytes, signature: str, inputs: Mapping[str, NDArray[Any]], kernels: OpResolverType) -> dict[str, NDArray[Any]]:
    """Each run from a model loaded anew, in the file's own types: what a device does."""
    steps: list[dict[str, NDArray[Any]]] = []
    try:
        for i in range(len(next(iter(inputs.values())))):
            run = Interpreter(model_content=model, experimental_op_resolver_type=kernels).get_signature_runner(signature)
            steps.append(run(**{name: values[i] for name, values in inputs.items()}))
    except (RuntimeError, ValueError) as error:
        raise EdgeError(f"golden vectors: LiteRT can't run the model: {' '.join(str(error).split())}") from error
    return {name: np.stack([step[name] for step in steps]) for name in steps[0]}


def _tolerance(output: NDArray[Any], plain: NDArray[Any]) -> float:
    if output.dtype.kind not in "iuf":
        return 0.0
    apart = np.abs(output.astype(np.float64) - plain.astype(np.float64))
    between = float(np.nanmax(apart, initial=0))
    least = 1.0 if output.dtype.kind in "iu" else _RELATIVE * float(np.nanmax(np.abs(output), initial=0))
    return max(_SLACK * between, least)
