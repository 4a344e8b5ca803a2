"""Running a flatbuffer on batches of named features, real values in and out.

    runner = Runner(Path("Format-Serving/tflite").read_bytes(), num_threads=2)
    predictions = runner({"image": images})["digit"]

LiteRT applies XNNPACK by itself. What this module adds is what makes predictions on a pipeline machine trustworthy: inputs
go by signature name, integers are rounded and saturate instead of wrapping, and a missing feature is an error.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.schemas import EdgeError, Signature, TensorSpec

SIGNATURE = "serving_default"


class Runner:
    """One loaded flatbuffer. Not for use from several threads at once, and not picklable: load it where it runs.

    Attributes:
        signature: the model's inputs and outputs as they are in the file, so quantized ones with their scale and zero point.
        batch_size: the batch that the model is fixed to, or None where it takes any.
    """

    def __init__(
        self, model: bytes, *, num_threads: int = 1, name: str = "the flatbuffer", observe: Callable[[Interpreter], None] | None = None
    ) -> None:
        """Loads a model.

        Args:
            model: a flatbuffer with a signature `serving_default`, or only one signature.
            num_threads: threads that LiteRT may use in one prediction, at least 1.
            name: what to call the model in an error.
            observe: called after each step with the interpreter, whose intermediate tensors are then all there to read; they
                cost memory, so without it none are kept.

        Raises:
            EdgeError: not a flatbuffer that this LiteRT can run, operators of TensorFlow or custom ones, no usable signature, or
                inputs without a batch dimension.
        """
        if not isinstance(model, (bytes, bytearray, memoryview)):
            raise EdgeError(f"{name}: got {model!r:.100}, expected the bytes of a .tflite file; give Path(...).read_bytes()")
        self._name = name
        self._observe = observe
        self._interpreter = _load(model, num_threads, name, keep_all=observe is not None)
        key = _signature_key(list(self._interpreter.get_signature_list()), name)
        runner = self._interpreter.get_signature_runner(key)
        inputs, outputs = runner.get_input_details(), runner.get_output_details()
        self._input_index = {n: int(d["index"]) for n, d in inputs.items()}
        self._output_index = {n: int(d["index"]) for n, d in outputs.items()}
        if set(self._input_index.values()) != {int(d["index"]) for d in self._interpreter.get_input_details()}:
            raise EdgeError(f"{name}: signature {key!r} isn't the model's main graph; export the model with this signature alone")
        self.signature = Signature(
            inputs=tuple(_spec(n, d) for n, d in inputs.items()), outputs=tuple(_spec(n, d) for n, d in outputs.items())
        )
        self.batch_size = _fixed_batch(self.signature, name)
        self._shapes: dict[str, tuple[int, ...]] = {}

    def __call__(self, features: Mapping[str, NDArray[Any]], source: str = "the examples") -> dict[str, NDArray[Any]]:
        """Predicts a batch of any size.

        A model that is fixed to a batch runs in chunks of it; a ragged last chunk is filled up with its last row and the
        surplus cut off.

        Args:
            features: `[n, ...]` each, by feature name; may hold more than the model takes. Real values, which are quantized
                where the model's input is quantized: rounded to the nearest integer (halves to even) and saturated.
            source: what to call the batch in an error.

        Returns:
            `[n, ...]` by output name; quantized outputs as real values in float32.

        Raises:
            EdgeError: a feature is missing, holds another number of values than its input, has a type or values that the
                input can't take, or the features have different numbers of examples.
        """
        fed = self.signature.feed(features, source)
        arrays = {spec.name: _to_input(spec, fed[spec.name], source) for spec in self.signature.inputs}
        lengths = {name: len(a) for name, a in arrays.items()}
        if len(set(lengths.values())) != 1:
            raise EdgeError(f"{source}: features with different numbers of examples, {lengths}; give each feature one value per example")
        n = next(iter(lengths.values()))
        if n == 0:
            return {o.name: np.zeros((0, *(d or 0 for d in o.shape[1:])), _real_dtype(o)) for o in self.signature.outputs}
        step = self.batch_size or n
        chunks = [self._run({name: a[at : at + step] for name, a in arrays.items()}, step) for at in range(0, n, step)]
        return {o.name: np.concatenate([_to_real(o, c[o.name]) for c in chunks])[:n] for o in self.signature.outputs}

    def _run(self, chunk: Mapping[str, NDArray[Any]], size: int) -> dict[str, NDArray[Any]]:
        """Runs `size` rows in the file's own types, filling up when the chunk has fewer."""
        chunk = {name: _fill(a, size) for name, a in chunk.items()}
        shapes = {name: a.shape for name, a in chunk.items()}
        try:
            if shapes != self._shapes:  # allocating lays out memory and re-applies XNNPACK: only when it must be
                self._shapes = {}
                for name, shape in shapes.items():
                    self._interpreter.resize_tensor_input(self._input_index[name], shape)
                self._interpreter.allocate_tensors()
                self._shapes = shapes
            for name, a in chunk.items():
                self._interpreter.set_tensor(self._input_index[name], a)
            self._interpreter.invoke()
            if self._observe:
                self._observe(self._interpreter)
        except (RuntimeError, ValueError) as error:
            raise EdgeError(f"{self._name}: LiteRT can't run it on inputs {shapes}: {_one_line(error)}") from error
        return {name: self._interpreter.get_tensor(index) for name, index in self._output_index.items()}


def quantize(values: NDArray[Any], dtype: str, scale: float, zero_point: int) -> NDArray[Any]:
    """Real values to integers: `clip(rint(values / scale) + zero_point)` to the range of the type.

    Rounds halves to even, as XNNPACK does; infinities saturate. NaN has no integer and must not come here.

    >>> quantize(np.array([0.26, 100.0, -np.inf]), "int8", 0.1, 0)
    array([   3,  127, -128], dtype=int8)
    """
    bounds = np.iinfo(dtype)
    quantized: NDArray[Any] = np.clip(np.rint(values.astype(np.float64) / scale) + zero_point, bounds.min, bounds.max).astype(dtype)
    return quantized


def dequantize(values: NDArray[Any], scale: float, zero_point: int) -> NDArray[np.float32]:
    """Integers to real values: `scale * (values - zero_point)`."""
    return ((values.astype(np.int32) - zero_point) * np.float32(scale)).astype(np.float32)


def _load(model: bytes, num_threads: int, name: str, keep_all: bool) -> Interpreter:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # LiteRT warns that keeping all tensors takes memory
            interpreter = Interpreter(model_content=bytes(model), num_threads=num_threads, experimental_preserve_all_tensors=keep_all)
        _refuse_custom_operators(model, name)
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise EdgeError(f"{name} ({len(model)} bytes): LiteRT can't load it: {_one_line(error)}") from error
    return interpreter


def _refuse_custom_operators(model: bytes, name: str) -> None:
    """Older TensorFlow, once it is in the process, lends LiteRT its operators (Flex), so a model would run here and on no device."""
    custom = [op for op in inspect.operators(model) if op.startswith(inspect.CUSTOM)]
    if custom:
        raise EdgeError(f"{name}: needs {', '.join(custom)}, which LiteRT has not; replace the layer that uses it")


def _signature_key(keys: list[str], name: str) -> str:
    if SIGNATURE in keys:
        return SIGNATURE
    if len(keys) != 1:
        raise EdgeError(f"{name}: has signatures {keys}; expected {SIGNATURE!r} or a single one, which name the inputs")
    return keys[0]


def _spec(name: str, details: Mapping[str, Any]) -> TensorSpec:
    shape = tuple(None if d < 0 else int(d) for d in details["shape_signature"])
    scales, zero_points = (details["quantization_parameters"][k] for k in ("scales", "zero_points"))
    dtype = np.dtype(details["dtype"])
    quantized = len(scales) == 1 and dtype.kind in "iu"
    return TensorSpec(
        name=name,
        shape=shape,
        dtype=dtype.name,
        scale=float(scales[0]) if quantized else None,
        zero_point=int(zero_points[0]) if quantized else None,
    )


def _fixed_batch(signature: Signature, name: str) -> int | None:
    scalar = [t.name for t in (*signature.inputs, *signature.outputs) if not t.shape]
    if scalar:
        raise EdgeError(f"{name}: {', '.join(scalar)} has no batch dimension; export a model on batches of examples")
    sizes = {t.shape[0] for t in signature.inputs if t.shape[0] is not None}
    if len(sizes) > 1:
        raise EdgeError(f"{name}: inputs are fixed to different batch sizes {sorted(sizes)}; export a model with one batch size")
    return next(iter(sizes), None)


def _to_input(spec: TensorSpec, values: NDArray[Any], source: str) -> NDArray[Any]:
    """Converts real values to the input's type, or raises: nothing wraps and nothing is guessed."""
    target = np.dtype(spec.dtype)
    if values.dtype == target and spec.scale is None:
        return values
    if values.dtype.kind not in "fiub" or target.kind not in "fiub":
        raise EdgeError(
            f"{source}: feature {spec.name!r} has type {values.dtype}, the model's input takes {target}; feed it {target} values"
        )
    if spec.scale is not None and spec.zero_point is not None:
        if np.isnan(values).any():
            raise EdgeError(
                f"{source}: feature {spec.name!r} holds NaN, which the model's {target} input can't take; impute it in Transform"
            )
        return quantize(values, spec.dtype, spec.scale, spec.zero_point)
    if target.kind == "f":
        return values.astype(target)
    converted = values.astype(target)
    if values.dtype.kind == "f" or not np.array_equal(converted, values):
        raise EdgeError(
            f"{source}: feature {spec.name!r} ({values.dtype}, {values.min()} to {values.max()}) doesn't fit the model's {target} input; "
            "cast it in Transform"
        )
    return converted


def _real_dtype(spec: TensorSpec) -> np.dtype[Any]:
    return np.dtype(spec.dtype if spec.scale is None else np.float32)


def _to_real(spec: TensorSpec, values: NDArray[Any]) -> NDArray[Any]:
    if spec.scale is None or spec.zero_point is None:
        return values
    return dequantize(values, spec.scale, spec.zero_point)


def _fill(values: NDArray[Any], size: int) -> NDArray[Any]:
    return values if len(values) == size else np.concatenate([values, np.repeat(values[-1:], size - len(values), axis=0)])


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
