"""Running a flatbuffer on batches of named features, real values in and out.

    runner = Runner(Path("Format-Serving/tflite").read_bytes(), num_threads=2)
    predictions = runner({"image": images})["digit"]

LiteRT applies XNNPACK by itself. What this module adds is what makes predictions on a pipeline machine trustworthy: inputs
go by signature name, integers are rounded and saturate instead of wrapping, no prediction depends on those before it, and
what doesn't fit is an error.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.entry import SIGNATURE, Entry, find_entry
from tfx_edge.litert.quantization import STRING, dequantize, no_rows, quantize, to_input, to_real
from tfx_edge.litert.signatures import signatures
from tfx_edge.schemas import EdgeError, Signature, TensorSpec

# Of inputs in one step. A layer's output is about as large, so it stays in the processor's cache (MobileNet 0.25 predicts a
# batch of 256 images of 96x96 up to twice as fast), and memory doesn't grow with the batch.
_STEP_BYTES = 1 << 21

__all__ = ["SIGNATURE", "Runner", "dequantize", "quantize"]


class Runner:
    """One loaded flatbuffer. Not for use from several threads at once, and not picklable: load it where it runs.

    Attributes:
        signature: the model's inputs and outputs as they are in the file, so quantized ones with their scale and zero point.
        batch_size: the batch that the model is fixed to, or None where it takes any.
        entry: the signature that is run, its graph and tensors.
    """

    def __init__(
        self,
        model: bytes,
        *,
        signature: str | None = None,
        num_threads: int = 1,
        name: str = "the flatbuffer",
        observe: Callable[[Interpreter], None] | None = None,
    ) -> None:
        """Loads a model.

        Args:
            model: a flatbuffer.
            signature: which of its signatures to run; None for `serving_default`, or for the only one.
            num_threads: threads that LiteRT may use in one prediction, at least 1.
            name: what to call the model in an error.
            observe: called after each step with the interpreter, whose intermediate tensors are then all there to read; they
                cost memory, so without it none are kept. For signatures of the main graph.

        Raises:
            EdgeError: not a flatbuffer that this LiteRT can run, operators of TensorFlow, custom or random ones, no such
                signature, or inputs without a batch dimension.
        """
        if not isinstance(model, (bytes, bytearray, memoryview)):
            raise EdgeError(f"{name}: got {model!r:.100}, expected the bytes of a .tflite file; give Path(...).read_bytes()")
        self._model, self._name, self._num_threads, self._observe = bytes(model), name, num_threads, observe
        self.entry = _entry(self._model, signature, name)
        if observe is not None and self.entry.subgraph != 0:
            raise EdgeError(
                f"{name}: signature {self.entry.signature!r} isn't the model's main graph; export the model with this signature alone"
            )
        self._interpreter = self._load()
        self.signature = _signature(self._interpreter, self.entry.signature, name)
        self.batch_size = _fixed_batch(self.signature, name)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._used = False

    def __call__(self, features: Mapping[str, NDArray[Any]], source: str = "the examples") -> dict[str, NDArray[Any]]:
        """Predicts a batch of any size.

        A model that is fixed to a batch runs in steps of it, another in one step, or in several where the examples are large;
        a ragged last step is filled up with its last row and the surplus cut off. A model with variables starts each step from
        their first values.

        Args:
            features: `[n, ...]` each, by feature name; may hold more than the model takes. Real values, which are quantized
                where the model's input is quantized: rounded to the nearest integer (halves to even) and saturated. Text as
                objects, bytes or str.
            source: what to call the batch in an error.

        Returns:
            `[n, ...]` by output name; quantized outputs as real values in float32, text as objects.

        Raises:
            EdgeError: a feature is missing, holds another number of values than its input, has a type or values that the
                input can't take (NaN where the model makes integers of it), the features have different numbers of
                examples, or an output doesn't have one row for each example.
        """
        arrays = self.raw_inputs(features, source)
        n = len(next(iter(arrays.values())))
        if n == 0:
            return {spec.name: no_rows(spec) for spec in self.signature.outputs}
        step = self.batch_size or min(n, self.rows_at_once(arrays))
        steps = [self._run({name: a[at : at + step] for name, a in arrays.items()}, step) for at in range(0, n, step)]
        return {o.name: to_real(o, _joined([s[o.name] for s in steps], n)) for o in self.signature.outputs}

    def rows_at_once(self, inputs: Mapping[str, NDArray[Any]]) -> int:
        """How many examples of `[n, ...]` inputs, n above 0, one step runs at most, where the batch isn't fixed: a power of two, since
        batch sizes mostly are.
        """
        n = len(next(iter(inputs.values())))
        return 1 << (max(1, _STEP_BYTES * n // max(1, sum(a.nbytes for a in inputs.values()))).bit_length() - 1)

    def raw_inputs(self, features: Mapping[str, NDArray[Any]], source: str = "the examples") -> dict[str, NDArray[Any]]:
        """A batch as the model's inputs hold it, `[n, ...]` each: what an application on a device would have to give it.

        Raises:
            EdgeError: as calling the runner.
        """
        fed = self.signature.feed(features, source)
        arrays = {s.name: to_input(s, fed[s.name], source, s.name not in self.entry.no_nan) for s in self.signature.inputs}
        lengths = {name: len(a) for name, a in arrays.items()}
        if len(set(lengths.values())) != 1:
            raise EdgeError(f"{source}: features with different numbers of examples, {lengths}; give each feature one value per example")
        return arrays

    def repeat(self) -> None:
        """Runs the last step once more as it is, to be timed: nothing is converted, copied, reset or returned."""
        with self._blamed(self._shapes):
            self._interpreter._interpreter.Invoke(self.entry.subgraph)

    def _run(self, step: Mapping[str, NDArray[Any]], size: int) -> dict[str, NDArray[Any]]:
        """Runs `size` rows in the file's own types, filling up when the step has fewer."""
        step = {name: _fill(a, size) for name, a in step.items()}
        shapes = {name: a.shape for name, a in step.items()}
        entry = self.entry
        with self._blamed(shapes):
            if self._used and entry.state == "reload":
                self._interpreter, self._shapes = self._load(), {}
            # What LiteRT's SignatureRunner does, which reaches every graph but lays out memory in every call.
            wrapper = self._interpreter._interpreter
            if shapes != self._shapes:  # laying out memory re-applies XNNPACK: only when it must be
                self._shapes = {}
                for name, shape in shapes.items():
                    wrapper.ResizeInputTensor(entry.inputs[name], np.array(shape, np.int32), False, entry.subgraph)
                wrapper.AllocateTensors(entry.subgraph)
                self._shapes = shapes
            if entry.state == "reset":
                wrapper.ResetVariableTensors()
            for name, a in step.items():
                wrapper.SetTensor(entry.inputs[name], a, entry.subgraph)
            self._used = True
            wrapper.Invoke(entry.subgraph)
            if self._observe:
                self._observe(self._interpreter)
            outputs = {name: wrapper.GetTensor(index, entry.subgraph) for name, index in entry.outputs.items()}
        self._check_rows(outputs, size)
        return outputs

    def _check_rows(self, outputs: Mapping[str, NDArray[Any]], size: int) -> None:
        for name, values in outputs.items():
            if values.shape[:1] != (size,):
                raise EdgeError(
                    f"{self._name}: output {name!r} has shape {values.shape} for {size} examples; "
                    "export a model that gives each example a row of its own"
                )

    def _load(self) -> Interpreter:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # LiteRT warns that keeping all tensors takes memory
                interpreter = Interpreter(
                    model_content=self._model, num_threads=self._num_threads, experimental_preserve_all_tensors=self._observe is not None
                )
            interpreter._interpreter.AllocateTensors(self.entry.subgraph)
        except (RuntimeError, ValueError) as error:
            raise _cannot_load(self._model, self._name, error, self._open_dimensions()) from error
        return interpreter

    def _open_dimensions(self) -> str:
        """What may be the reason that a graph can't be laid out: LiteRT first takes 1 for every dimension that is open."""
        found = signatures(self._model).get(self.entry.signature)
        for spec in found.inputs if found else ():
            if None in spec.shape[1:]:
                return f"; its input {spec.name!r} is {list(spec.shape)}: give all but the batch a size in the model, LiteRT takes 1 here"
        return ""

    @contextmanager
    def _blamed(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError) as error:
            raise EdgeError(f"{self._name}: LiteRT can't run it on inputs {shapes}: {_one_line(error)}") from error


def _entry(model: bytes, signature: str | None, name: str) -> Entry:
    try:
        parsed = inspect.parse(model)
    except EdgeError as error:
        raise _cannot_load(model, name, error) from error
    try:
        return find_entry(parsed, signature, name)
    except (AttributeError, IndexError, TypeError) as error:  # a damaged file's indices lead nowhere
        raise _cannot_load(model, name, error) from error


def _cannot_load(model: bytes, name: str, error: Exception, why: str = "") -> EdgeError:
    return EdgeError(f"{name} ({len(model)} bytes): LiteRT can't load it: {_one_line(error)}{why}")


def _signature(interpreter: Interpreter, key: str, name: str) -> Signature:
    runner = interpreter.get_signature_runner(key)
    return Signature(
        inputs=tuple(_spec(n, d, name) for n, d in runner.get_input_details().items()),
        outputs=tuple(_spec(n, d, name) for n, d in runner.get_output_details().items()),
    )


def _spec(tensor: str, details: Mapping[str, Any], name: str) -> TensorSpec:
    shape = tuple(None if d < 0 else int(d) for d in details["shape_signature"])
    scales, zero_points = (details["quantization_parameters"][k] for k in ("scales", "zero_points"))
    dtype = np.dtype(details["dtype"])
    if len(scales) > 1:
        raise EdgeError(f"{name}: {tensor!r} is quantized with {len(scales)} scales; export a model whose inputs and outputs have one each")
    quantized = len(scales) == 1 and dtype.kind in "iu"
    return TensorSpec(
        name=tensor,
        shape=shape,
        dtype=STRING if dtype.kind == "S" else dtype.name,
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


def _fill(values: NDArray[Any], size: int) -> NDArray[Any]:
    return values if len(values) == size else np.concatenate([values, np.repeat(values[-1:], size - len(values), axis=0)])


def _joined(steps: list[NDArray[Any]], n: int) -> NDArray[Any]:
    return steps[0][:n] if len(steps) == 1 else np.concatenate(steps)[:n]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
