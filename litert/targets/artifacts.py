"""What a device's toolchain takes besides the flatbuffer: source for TensorFlow Lite Micro, Vela's flatbuffer for Ethos-U.

    made = target_artifacts(model, ["tflm", Target(profile="ethos-u55", accelerator="ethos-u55-64")], features, "digits")
    for name, chunks in made.files.items():
        with open(f"edge/{name}", "wb") as file:
            file.writelines(chunks)

The tools run the model, or compile it, but nothing is held against a budget here: that is the gate's work, see `check`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.quantization import to_real
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.targets.micro_source import HEADER, SOURCE, micro_source
from tfx_edge.litert.targets.outcome import Outcome, shortened
from tfx_edge.litert.targets.tflm import run_tflm
from tfx_edge.litert.targets.vela import compile_vela
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.target import Target, TargetReport

COMPILED = "model_vela.tflite"


@dataclass(frozen=True)
class TargetArtifacts:
    """Files of a bundle, and what the tools that made them measured.

    Attributes:
        files: by name in `edge/`, each as chunks of its content, to be written one after the other; may be iterated again.
        reports: one for each target that has files. `reasons` are what the tool holds against the model whatever the budgets are.
    """

    files: Mapping[str, Iterable[bytes]] = field(default_factory=dict)
    reports: tuple[TargetReport, ...] = ()


def target_artifacts(
    model: bytes,
    targets: Sequence[Target | str],
    features: Mapping[str, NDArray[Any]],
    namespace: str = "model",
    *,
    time_limit_s: float = 120.0,
) -> TargetArtifacts:
    """Makes the files that targets take: `model.cc` and `model.h` for `tflm`, `model_vela.tflite` for `ethos-u*`, nothing for others.

    Args:
        model: a flatbuffer.
        targets: profiles, by name or with settings; at most one of TensorFlow Lite Micro and one Ethos-U.
        features: examples, `[n, ...]` real values by feature name, on which TensorFlow Lite Micro measures its arena.
        namespace: C++ namespace of the source.
        time_limit_s: seconds that each tool may take.

    Returns:
        The same files for the same arguments, whatever the folder and the process.

    Raises:
        EdgeError: a tool isn't installed, or the target can't take the model: it lacks an operator, can't run it, or nothing of it would
            run on the NPU. No file is made then.
    """
    files: dict[str, Iterable[bytes]] = {}
    reports: list[TargetReport] = []
    for target in (Target(profile=t) if isinstance(t, str) else t for t in targets):
        profile = target.resolve()
        if profile.tool not in _MAKERS:
            continue
        try:
            made, outcome = _MAKERS[profile.tool](model, target, features, namespace, time_limit_s)
        except EdgeError as error:
            raise EdgeError(f"target {profile.name!r}: {error}") from error
        taken = files.keys() & made.keys()
        if taken:
            raise EdgeError(f"target {profile.name!r}: another target writes {min(taken)} already; export a bundle for each board")
        files |= made
        reports.append(
            TargetReport(
                profile=profile.name, tool=outcome.tool, measurements=outcome.measurements, ops=outcome.ops, reasons=outcome.reasons
            )
        )
    return TargetArtifacts(files, tuple(reports))


def golden_features(model: bytes, golden: bytes) -> dict[str, NDArray[Any]]:
    """The inputs of golden vectors as real values, `[n, ...]` by feature name: what `target_artifacts` takes.

    Args:
        model: the flatbuffer that the vectors are of.
        golden: as `golden_vectors` gives them.
    """
    with np.load(BytesIO(golden)) as arrays:
        runner = Runner(model, signature=str(arrays["signature"]))
        stepped = {spec: arrays[f"input:{spec.name}"] for spec in runner.signature.inputs}
    return {spec.name: to_real(spec, values.reshape(-1, *values.shape[2:])) for spec, values in stepped.items()}


def _micro(
    model: bytes, target: Target, features: Mapping[str, NDArray[Any]], namespace: str, time_limit_s: float
) -> tuple[dict[str, Iterable[bytes]], Outcome]:
    micro_source(model, namespace)  # what it refuses is told before the interpreter runs, and all operators that are missing
    outcome = run_tflm(model, target, features, time_limit_s)
    if "arena_bytes" not in outcome.measurements:
        raise EdgeError(shortened(outcome.reasons))
    source = micro_source(model, namespace, arena_bytes=int(outcome.measurements["arena_bytes"]), tool=outcome.tool)
    return {HEADER: (source.header,), SOURCE: source}, outcome


def _vela(
    model: bytes, target: Target, features: Mapping[str, NDArray[Any]], namespace: str, time_limit_s: float
) -> tuple[dict[str, Iterable[bytes]], Outcome]:
    inspect.parse(model)  # what isn't a flatbuffer goes to no tool
    outcome = compile_vela(model, target, time_limit_s)
    if outcome.compiled is None:
        raise EdgeError(shortened(outcome.reasons))
    if not outcome.measurements["npu_share"]:
        why = shortened((f"{op.operator} ({op.count}): {op.reason}" for op in outcome.ops), most=1) or "it has no operator"
        raise EdgeError(
            f"nothing of the model would run on the NPU: {why}; quantize it with scheme int8 and fix its shapes, or leave the target out"
        )
    return {COMPILED: (outcome.compiled,)}, outcome


_MAKERS = {"tflite-micro": _micro, "vela": _vela}
