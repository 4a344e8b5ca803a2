"""SavedModel to flatbuffer, by TFLiteConverter in a process of its own.

The converter can hang, or abort the process it runs in, on models that it doesn't know. A child process turns each of that
into an error which names the model. This module needs no TensorFlow; the child does.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tfx_edge.litert.refusal import last_words, refusal
from tfx_edge.litert.runner import SIGNATURE
from tfx_edge.litert.shared_constants import share_constants
from tfx_edge.litert.states import separate_states
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.schemes import IoType

_REFUSED = 3  # exit status of a child whose converter raised an exception, unlike one that died
_RESULT, _REFUSAL = "model.tflite", "refusal.txt"


def convert(
    saved_model: str,
    *,
    time_limit_s: float = 600.0,
    name: str = "the model",
    quantized_io: IoType | None = None,
    signatures: Sequence[str] = (SIGNATURE,),
    select_tf_ops: bool = False,
) -> bytes:
    """Converts a SavedModel to a flatbuffer, of LiteRT's builtin operators alone if nothing else is allowed.

    The same SavedModel gives the same bytes, in any process and from any path.

    Args:
        saved_model: a local folder with a SavedModel whose signatures take and give named tensors.
        quantized_io: for a model that emulates int8 (quantization-aware training): computes in int8 where it does, with inputs and
            outputs of this type. None gives a float32 flatbuffer.
        time_limit_s: seconds after which the converter is stopped.
        name: what to call the model in an error.
        signatures: of the SavedModel, each of which becomes one of the flatbuffer.
        select_tf_ops: lets operators of TensorFlow in, as custom ones named `Flex...`.

    Returns:
        The flatbuffer, whose signatures have the same names, inputs and outputs. Signatures share equal constants.

    Raises:
        EdgeError: no such SavedModel, the converter refused the model, died or took too long. Operators that LiteRT hasn't
            are named.
    """
    folder = Path(saved_model).resolve()
    if not (folder / "saved_model.pb").is_file():
        raise EdgeError(f"{name}: no SavedModel at {folder}; expected a folder with saved_model.pb")
    # The empty working directory keeps whatever lies in the caller's from being imported: with -m it leads sys.path.
    with tempfile.TemporaryDirectory(prefix="tfx-edge-convert-") as scratch:
        log = Path(scratch, "log")
        settings = json.dumps({"signatures": list(signatures), "quantized_io": quantized_io, "select_tf_ops": select_tf_ops})
        command = [sys.executable, "-m", "tfx_edge.litert.convert", str(folder), scratch, settings]
        with log.open("wb") as output:
            try:
                status = subprocess.run(
                    command,
                    cwd=scratch,
                    env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},  # it only folds constants: no device to wait for
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=time_limit_s,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                raise EdgeError(
                    f"{name}: TFLiteConverter was stopped after {time_limit_s:g} s; simplify the model or raise the time limit"
                ) from None
        if status == 0:
            made = Path(scratch, _RESULT).read_bytes()
            made = share_constants(made) if len(signatures) > 1 else made
            return made if quantized_io else separate_states(made)
        if status == _REFUSED:
            raise EdgeError(f"{name}: {refusal(Path(scratch, _REFUSAL).read_text())}")
        raise EdgeError(f"{name}: TFLiteConverter died ({_cause(status)}); its last words: {last_words(log.read_text(errors='replace'))}")


def _cause(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"


def _child(saved_model: str, scratch: str, settings: str) -> int:
    """Runs in the child process: leaves the flatbuffer in the folder `scratch`, or what the converter said against it."""
    import tensorflow as tf

    wanted = json.loads(settings)
    builtins, tensorflows = tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS
    # TensorFlow's only when it doesn't go without: that they are allowed changes no other model.
    for operators in ([builtins], [builtins, tensorflows])[: 2 if wanted["select_tf_ops"] else 1]:
        try:
            converter = tf.lite.TFLiteConverter.from_saved_model(saved_model, signature_keys=wanted["signatures"])
            converter.target_spec.supported_ops = operators
            if wanted["quantized_io"]:
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
                converter.inference_input_type = converter.inference_output_type = tf.as_dtype(wanted["quantized_io"])
            Path(scratch, _RESULT).write_bytes(converter.convert())
            return 0
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells it
            Path(scratch, _REFUSAL).write_text(f"{type(error).__name__}: {error}")
    return _REFUSED


if __name__ == "__main__":
    sys.exit(_child(*sys.argv[1:]))
