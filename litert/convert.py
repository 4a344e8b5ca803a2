"""SavedModel to flatbuffer, by TFLiteConverter in a process of its own.

The converter can hang, or abort the process it runs in, on models that it doesn't know. A child process turns each of that
into an error which names the model. This module needs no TensorFlow; the child does.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tfx_edge.litert.runner import SIGNATURE
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
) -> bytes:
    """Converts a SavedModel to a flatbuffer of LiteRT's builtin operators alone.

    The same SavedModel gives the same bytes, in any process and from any path.

    Args:
        saved_model: a local folder with a SavedModel whose signature `serving_default` takes and gives named tensors.
        quantized_io: for a model that emulates int8 (quantization-aware training): computes in int8 where it does, with inputs and
            outputs of this type. None gives a float32 flatbuffer.
        time_limit_s: seconds after which the converter is stopped.
        name: what to call the model in an error.

    Returns:
        The flatbuffer, whose signature `serving_default` has the same names.

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
        command = [sys.executable, "-m", "tfx_edge.litert.convert", str(folder), scratch, *([quantized_io] if quantized_io else [])]
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
            return Path(scratch, _RESULT).read_bytes()
        if status == _REFUSED:
            raise EdgeError(f"{name}: {_refusal(Path(scratch, _REFUSAL).read_text())}")
        raise EdgeError(f"{name}: TFLiteConverter died ({_cause(status)}); its last words: {_last_words(log.read_text(errors='replace'))}")


def _refusal(said: str) -> str:
    """One line out of a converter's exception; operators without a kernel are listed in it as `tf.Name(types...)`."""
    operators = sorted(set(re.findall(r"^\s+(tf\.\w+)\(", said, re.MULTILINE)))
    if operators and re.search(r"tensor<[^>]*b?f16>", said):
        return (
            f"{', '.join(operators)} computes in 16 bits, for which LiteRT has no builtin operator; bring the model to float32, which "
            "edge preparation does by itself for Keras models of a mixed policy: save the model with model.save, or give model_fn"
        )
    if operators:
        need = "a custom kernel" if re.search(r"^Custom ops:", said, re.MULTILINE) else "Flex"
        return (
            f"{', '.join(operators)} needs {need}: LiteRT has no builtin operator for it; replace the layer that uses it, which edge "
            "preparation does by itself for many of Keras' own: save the model with model.save, or give model_fn, which rebuilds it"
        )
    if "Lowering tensor list ops" in said:
        return "a recurrent layer doesn't convert with a batch of any size (tensor list ops); give the layer static shapes or unroll it"
    return f"TFLiteConverter refused it: {_last_words(said)}"


def _last_words(said: str) -> str:
    """The last lines that say something, without TensorFlow's informational log lines and stack frames."""
    lines = [" ".join(line.split()) for line in said.splitlines() if line.strip()]
    speaking = [line for line in lines if not re.match(r"(\*\*\*|@|File \"|Traceback|\^|~|[IW]\d{4} |\d{4}-\d\d-\d\d .*: [IW] )", line)]
    return " / ".join(speaking[-2:])[:500] or "none"


def _cause(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"


def _child(saved_model: str, scratch: str, quantized_io: str | None = None) -> int:
    """Runs in the child process: leaves the flatbuffer in the folder `scratch`, or what the converter said against it."""
    import tensorflow as tf

    try:
        converter = tf.lite.TFLiteConverter.from_saved_model(saved_model, signature_keys=[SIGNATURE])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if quantized_io:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.inference_input_type = converter.inference_output_type = tf.as_dtype(quantized_io)
        flatbuffer: bytes = converter.convert()
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells it
        Path(scratch, _REFUSAL).write_text(f"{type(error).__name__}: {error}")
        return _REFUSED
    Path(scratch, _RESULT).write_bytes(flatbuffer)
    return 0


if __name__ == "__main__":
    sys.exit(_child(*sys.argv[1:]))
