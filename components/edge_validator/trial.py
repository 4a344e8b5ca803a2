"""The candidate's first load and run, in a child process: a damaged flatbuffer can kill its interpreter, or keep it busy for ever."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert.child import Note, call_in_child
from tfx_edge.litert.inspect import minimum_runtime, runtime, runtime_supports
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError


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
        runner(features)
    except Exception as error:  # noqa: BLE001 - whatever a flatbuffer makes these raise, it is the flatbuffer's fault
        return " ".join(str(error).split()) or type(error).__name__
    return None
