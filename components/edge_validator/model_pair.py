"""Float baseline and flatbuffer, predicting the same batch."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from tfx_edge.components.documents import read_bytes
from tfx_edge.components.edge_validator.baseline import Baseline, load_baseline
from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE
from tfx_edge.components.edge_validator.raw_examples import raw_features
from tfx_edge.components.edge_validator.trial import TrialFailure, try_model
from tfx_edge.litert.runner import SIGNATURE, Runner
from tfx_edge.optimize.raw_features import TransformGraph
from tfx_edge.schemas import EdgeError, Signature

Predictions = NDArray[Any] | dict[str, NDArray[Any]]

# Everything else that a model raises is the model's fault; these say something about the machine, and another try may do.
_INFRASTRUCTURE = (
    MemoryError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnauthenticatedError,
    tf.errors.UnavailableError,
)


class ModelFault(EdgeError):
    """A model can't be evaluated, and that is its own fault: a reason against the blessing, not a failure of the component."""


@dataclass(frozen=True)
class Models:
    """Which models to run, and how.

    Attributes:
        candidate: path of the flatbuffer.
        baseline: folder of the float SavedModel, or of a float flatbuffer named `tflite`; None: the candidate runs alone.
        transform_graph: folder of the TransformGraph artifact, where there is one.
        signature: of both models; None: the default one.
        outputs: those that will be looked at, where None is the only one of a model that has one; None: any, unchecked.
        num_threads: that LiteRT may use in one prediction.
        time_limit_s: seconds that the candidate may take for its first load and batch, in a process of its own.
        raw: the candidate takes the raw features of a batch (`raw_examples.py`), the baseline the transformed ones.
    """

    candidate: str
    baseline: str | None
    transform_graph: str | None = None
    signature: str | None = None
    outputs: tuple[str | None, ...] | None = (None,)
    num_threads: int = 1
    time_limit_s: float = 120.0
    raw: bool = False


class ModelPair:
    """Both models, loaded once. May be shared by threads."""

    def __init__(self, models: Models) -> None:
        """Loads the baseline; the candidate follows with the first batch.

        Args:
            models: what to load.

        Raises:
            ModelFault: the baseline can't be loaded.
            EdgeError: there is no such output.
        """
        self._models = models
        self._flatbuffer = read_bytes(models.candidate)
        self._candidate: Runner | None = None
        self._lock = threading.Lock()  # LiteRT's interpreter is not for several threads at once
        self._baseline: Baseline | None = None
        if models.baseline is not None:
            with _blame(BASELINE):
                self._baseline = load_baseline(models.baseline, models.transform_graph, models.signature, models.num_threads)
            if models.outputs is not None:
                _check_named(models.outputs, self._baseline.signature.output_names)

    def predict(self, features: Mapping[str, NDArray[Any]]) -> dict[str, Predictions]:
        """Predicts a batch with both, or with the candidate alone where there is no baseline.

        Args:
            features: `[n, ...]` each, by feature name.

        Returns:
            `baseline` and `candidate`: `[n, ...]`, or where the models have several outputs, such arrays by output name.

        Raises:
            ModelFault: the candidate can't be loaded, a model can't take the batch or predicts NaN or infinity, or the outputs
                don't correspond.
        """
        predictions: dict[str, dict[str, NDArray[Any]]] = {}
        with self._lock:
            if self._baseline is not None:
                with _blame(BASELINE):
                    predictions[BASELINE] = self._baseline.predict(features)
            with _blame(CANDIDATE):
                fed = raw_features(features) if self._models.raw else features
                if self._candidate is None:
                    self._candidate = self._load(fed)
                predictions[CANDIDATE] = self._candidate(fed)
        for name, outputs in predictions.items():
            _check_finite(name, outputs)
        if BASELINE in predictions:
            _check_shapes(predictions[BASELINE], predictions[CANDIDATE])
        return {name: _by_output(outputs) for name, outputs in predictions.items()}

    def _load(self, features: Mapping[str, NDArray[Any]]) -> Runner:
        fault = try_model(self._flatbuffer, features, self._models.time_limit_s, self._models.signature)
        if fault is not None:
            raise ModelFault(f"{CANDIDATE}: {fault}")
        runner = Runner(self._flatbuffer, signature=self._models.signature, num_threads=self._models.num_threads)
        if self._models.signature is None and runner.entry.signature != SIGNATURE:
            raise ModelFault(
                f"{CANDIDATE}: its only signature is {runner.entry.signature!r}; name it in GateConfig.signature, so that the baseline "
                "runs the same"
            )
        if self._baseline is not None:
            _check_inputs(self._baseline.signature, runner.signature, self._models.transform_graph if self._models.raw else None)
            _check_outputs(self._baseline.signature, runner.signature)
        return runner


@contextmanager
def _blame(model: str) -> Iterator[None]:
    """Turns what a model raises into a `ModelFault` that says which model it was."""
    try:
        yield
    except (ModelFault, TrialFailure, *_INFRASTRUCTURE):
        raise
    except Exception as error:
        raise ModelFault(f"{model}: {_one_line(error)}") from error


def _check_named(outputs: Collection[str | None], there: Sequence[str]) -> None:
    for output in outputs:
        if len(there) == 1 and output is not None:
            raise EdgeError(f"threshold on output {output!r}: the model has one output, {there[0]!r}; leave the threshold's output out")
        if len(there) > 1 and output not in there:
            given = "without an output" if output is None else f"on output {output!r}"
            raise EdgeError(f"threshold {given}: the model has the outputs {', '.join(there)}; name one of these in the threshold's output")


def _check_inputs(baseline: Signature, candidate: Signature, transform_graph: str | None) -> None:
    """A candidate that reads what its baseline doesn't, the label say, is another model.

    With a transform graph the candidate's inputs are raw features, from which Transform makes the baseline's.
    """
    known: Collection[str] = baseline.input_names
    whose = "the baseline's"
    if transform_graph is not None:
        known, whose = TransformGraph(transform_graph).needed(known), "those that Transform makes the baseline's of"
    if not set(candidate.input_names) <= set(known):
        raise ModelFault(
            f"candidate: its inputs are {', '.join(sorted(candidate.input_names))}, {whose} {', '.join(sorted(known))}; "
            "export it from the baseline"
        )


def _check_outputs(baseline: Signature, candidate: Signature) -> None:
    if len(baseline.outputs) == len(candidate.outputs) == 1:
        return
    if set(baseline.output_names) != set(candidate.output_names):
        raise ModelFault(
            f"candidate: its outputs are {', '.join(sorted(candidate.output_names))}, the baseline's "
            f"{', '.join(sorted(baseline.output_names))}; export it from the baseline"
        )


def _check_finite(model: str, predictions: Mapping[str, NDArray[Any]]) -> None:
    for output, values in predictions.items():
        if values.dtype.kind == "f":
            finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
            if not finite.all():
                raise ModelFault(
                    f"{model}: output {output!r} is NaN or infinite for {int((~finite).sum())} of a batch of {len(finite)} examples; "
                    "look at the model's weights and the examples' values"
                )


def _check_shapes(baseline: Mapping[str, NDArray[Any]], candidate: Mapping[str, NDArray[Any]]) -> None:
    single = len(baseline) == 1
    for output, values in baseline.items():
        other = next(iter(candidate.values())) if single else candidate[output]
        if values.shape != other.shape:
            raise ModelFault(
                f"candidate: output {output!r} has shape {other.shape}, the baseline's {values.shape} on the same batch; "
                "export it from the baseline"
            )


def _by_output(predictions: dict[str, NDArray[Any]]) -> Predictions:
    return next(iter(predictions.values())) if len(predictions) == 1 else predictions


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, EdgeError) else f"{type(error).__name__}: {text:.500}"
