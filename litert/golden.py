"""Golden vectors: inputs, and what the model makes of them here, for a device to test itself by."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from tfx_edge.litert.made_up import made_up
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, TensorRanges

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
    largest finite value of a float one. Other integers, such as a class, have none, and NaN and infinity must be where they are.

    Args:
        model: the flatbuffer.
        signature: the one that is run; None for `serving_default` or the only one.
        examples: `[n, ...]` real values by feature name, of which the first are taken; None makes inputs up.
        ranges: calibrated; inputs that are made up lie within theirs, see `made_up`.
        runs: how many times the model is run, each with one batch of the size that it is fixed to, or with one example.
        seed: of what is made up.

    Returns:
        An npz file that `device.selftest` reads; the same arguments give the same bytes.

    Raises:
        EdgeError: LiteRT can't run the model, or the examples don't fit it.
    """
    runner = Runner(model, signature=signature)
    batch = runner.batch_size or 1
    made = made_up(model, runner, ranges, runs * batch, seed) if examples is None else {n: v[: runs * batch] for n, v in examples.items()}
    raw = runner.raw_inputs(made, "the golden inputs")
    whole = len(next(iter(raw.values()))) // batch
    if whole == 0:
        raise EdgeError(f"golden vectors: fewer examples than the model's batch of {batch}; give at least {batch}")
    inputs = {name: values[: whole * batch].reshape(whole, batch, *values.shape[1:]) for name, values in raw.items()}
    key = runner.entry.signature
    outputs = _run(model, key, inputs, OpResolverType.AUTO)
    plain = _run(model, key, inputs, OpResolverType.BUILTIN_REF)
    quantized = {spec.name for spec in runner.signature.outputs if spec.scale is not None}
    arrays: dict[str, Any] = {"signature": np.array(key)}
    for name in sorted(inputs):
        arrays[f"input:{name}"] = inputs[name]
    for name in sorted(outputs):
        arrays[f"output:{name}"] = outputs[name]
        arrays[f"tolerance:{name}"] = np.array(_tolerance(outputs[name], plain[name], quantized=name in quantized))
    content = BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


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


def _tolerance(output: NDArray[Any], plain: NDArray[Any], *, quantized: bool) -> float:
    if output.dtype.kind not in "iuf":
        return 0.0
    finite = np.isfinite(output) & np.isfinite(plain)  # NaN and infinity have to be where they are
    there = np.abs(output[finite].astype(np.float64))
    apart = np.abs(output[finite].astype(np.float64) - plain[finite].astype(np.float64))
    least = _RELATIVE * float(np.max(there, initial=0)) if output.dtype.kind == "f" else float(quantized)
    return max(_SLACK * float(np.max(apart, initial=0)), least)
