"""The candidate's first load and run, in a child process: a damaged flatbuffer can kill its interpreter, or keep it busy for ever."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert.child import Note, call_in_child
from tfx_edge.litert.inspect import minimum_runtime, runtime
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.versions import runtime_supports


class TrialFailure(RuntimeError):
    """The process failed for a reason that isn't the model's."""


def try_model(model: bytes, features: Mapping[str, NDArray[Any]], time_limit_s: float, signature: str | None = None) -> str | None:
    """Loads a flatbuffer and predicts one batch in a process of its own.

    Args:
        model: the flatbuffer.
        features: a batch, `[n, ...]` each, by feature name; may hold more than the model takes.
        time_limit_s: seconds for the whole process.
        signature: the one to run; None: the default one.

    Returns:
        What is wrong with the model, in one line; None when nothing is.

    Raises:
        TrialFailure: the process failed for a reason that isn't the model's.
    """
    try:
        return call_in_child(_try, model, dict(features), signature, time_limit_s=time_limit_s)
    except EdgeError as error:  # it was killed, or took too long
        return str(error)
    except RuntimeError as error:
        raise TrialFailure(f"the candidate couldn't be tried: {error}") from error


def _try(note: Note, model: bytes, features: dict[str, NDArray[Any]], signature: str | None) -> str | None:
    try:
        note("reading its operators")
        needs = minimum_runtime(model)
        if not runtime_supports(needs):
            newer = "install a newer ai-edge-litert here and on the device"
            return f"it needs the runtime of TensorFlow Lite {needs}, this is {runtime()}; {newer}"
        note("loading it")
        runner = Runner(model, signature=signature)
        note(f"predicting {len(next(iter(features.values()), ()))} examples")
        together = runner(features)
        note("predicting the first example alone")
        alone = runner({name: values[:1] for name, values in features.items()})
        mixed = [spec.name for spec in runner.signature.outputs if not _alike(together[spec.name][:1], alone[spec.name], spec.scale or 0.0)]
        if mixed:
            return (
                f"output {mixed[0]!r} of an example depends on the others in its batch: it is another when the first one is predicted "
                "alone, as on a device; take what reduces over the batch out of the model"
            )
    except Exception as error:  # noqa: BLE001 - whatever a flatbuffer makes these raise, it is the flatbuffer's fault
        return " ".join(str(error).split()) or type(error).__name__
    return None


def _alike(together: NDArray[Any], alone: NDArray[Any], step: float) -> bool:
    """Whether two predictions of an example are the same, but for rounding: one in a thousand, or one step of a quantized output."""
    if together.dtype.kind != "f":
        return bool(np.array_equal(together, alone))
    size = float(np.max(np.abs(together), initial=0.0))
    return bool(np.allclose(together, alone, rtol=0.0, atol=1e-3 * size + 1.001 * step, equal_nan=True))
