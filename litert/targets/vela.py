"""A model compiled by Vela for an Arm Ethos-U: what runs on the NPU, the memory it takes, and Vela's estimate of the time.

Vela is a command; what it writes is read back: the summary as CSV, the compiled flatbuffer, in which everything that runs on
the NPU has become one operator or a few, and on standard output why an operator has not.
"""

import csv
import math
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfx_edge.litert import inspect
from tfx_edge.litert.targets import side
from tfx_edge.litert.targets.outcome import Outcome, group
from tfx_edge.schemas.target import OpPlacement, Target

_MODULE = "ethosu"
_NPU_OPERATOR = inspect.CUSTOM + "ethos-u"
# How Vela begins the third line of a reason, where there is one.
_EXPLAINS = ("Feature-map", "Weight", "Bias", "Constraint", "Op ", "IFM", "OFM", "Kernel", "Stride", "Tensor")
# What may follow a reason and is no part of it.
_NO_REASON = ("Warning", "#", "Network", "Tensor '", "TfLiteReader", "Info")
_KIB = 1024  # the summary counts memory in KiB, time in seconds


def compile_vela(model: bytes, target: Target, time_limit_s: float) -> Outcome:
    """Compiles a model.

    Returns:
        `npu_share` of the model's operators, `unsupported_ops` the number of those that stay on the CPU, `sram_bytes`, `dram_bytes` and
        `flash_bytes`, and `npu_time_ms` where anything runs on the NPU; the compiled flatbuffer.
    """
    python = side.find_python(_MODULE)
    version = side.version(python, _MODULE) if python is not None else None
    if python is None or version is None:
        return Outcome("Vela", reasons=(side.not_installed(_MODULE),))
    profile = target.resolve()
    accelerator = target.accelerator or profile.accelerators[0]
    system = str(target.system_config or profile.system_config)
    memory = str(target.memory_mode or profile.memory_mode)
    tool = f"Vela {version} ({accelerator}, {system}, {memory})"
    config = profile.vela_config and str(Path(profile.vela_config).absolute())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.tflite").write_bytes(model)
        command = ["-m", "ethosu.vela", "model.tflite", "--output-dir", "out", "--config", config or "Arm/vela.ini"]
        command += ["--accelerator-config", accelerator, "--system-config", system, "--memory-mode", memory]
        run = side.run(python, command, folder, time_limit_s)
        compiled, summaries = folder / "out" / "model_vela.tflite", list((folder / "out").glob("model_summary_*.csv"))
        # Vela ends with status 0 even where it couldn't read the model.
        if run.status != 0 or not compiled.exists() or len(summaries) != 1:
            return Outcome(tool, reasons=(_fault(run, time_limit_s),))
        made = compiled.read_bytes()
        with summaries[0].open(newline="") as file:
            (summary,) = csv.DictReader(file)
    return outcome(tool, model, made, summary, _why_not(run.stdout + run.stderr))


def outcome(tool: str, model: bytes, compiled: bytes, summary: Mapping[str, str], why_not: Mapping[str, str]) -> Outcome:
    """Reads what Vela made of a model.

    Args:
        tool: what the report calls it.
        model: the flatbuffer.
        compiled: what Vela made of it.
        summary: the row of Vela's summary, by column.
        why_not: Vela's reasons, by output tensor.
    """
    made = _main_graph(compiled)
    if (_NPU_OPERATOR, "") in made:  # seen behind layers that compute shapes: what reads the value gets it from nowhere
        lost = "Vela made an NPU operator without an output, so the model would compute something else"
        return Outcome(tool, reasons=(f"{lost}; export it with a fixed batch, so that no shape is computed",))
    # By operator and output: names of tensors alone need not be unique.
    left = Counter(op for op in made if op[0] != _NPU_OPERATOR)
    ops = []
    for operator, output in _main_graph(model):
        on_cpu = left[operator, output] > 0
        left[operator, output] -= on_cpu
        reason = why_not.get(output, "Vela gives no reason") if on_cpu else ""
        ops.append(OpPlacement(operator=operator, count=1, runs_on="CPU" if on_cpu else "NPU", reason=reason, output=output))
    unsupported = sum(op.runs_on == "CPU" for op in ops) + left.total()  # the rest are what Vela itself added on the CPU
    measurements = {"unsupported_ops": float(unsupported), "npu_share": max(0.0, 1 - unsupported / len(ops)) if ops else 0.0}
    if unsupported < len(ops):  # otherwise Vela writes zeros
        flash = sum(_number(summary, f"{where}_flash_memory_used") for where in ("on_chip", "off_chip")) * _KIB
        measurements |= {
            "sram_bytes": _number(summary, "sram_memory_used") * _KIB,
            "dram_bytes": _number(summary, "dram_memory_used") * _KIB,
            "flash_bytes": flash,
            "npu_time_ms": round(_number(summary, "inference_time") * 1e3, 9),
        }
    return Outcome(tool, {k: v for k, v in measurements.items() if math.isfinite(v)}, group(ops), (), compiled)


def _main_graph(model: bytes) -> list[tuple[str, str]]:
    """Operator and first output of each, in order; the output is empty where there is none."""
    parsed = inspect.parse(model)
    return [(name, output) for graph, _, name, output in inspect.named_operators(parsed) if graph is parsed.subgraphs[0]]


def _why_not(text: str) -> dict[str, str]:
    """Vela's reasons by output tensor: a line that names the operator and its output, one that begins with Reason, perhaps one more."""
    reasons = {}
    lines = [*text.splitlines(), "", ""]
    for warning, reason, more in zip(lines, lines[1:], lines[2:], strict=False):
        named = re.match(r"Warning \(supported operators\) operator: \w+, ofm: '(.*)'", warning)
        if named and reason.startswith("Reason: "):
            # The tensor's name in brackets would make every reason another.
            plain = re.sub(r" \(.*\)$", "", reason.removeprefix("Reason: "))
            reasons[named[1]] = plain if not more or more.startswith(_NO_REASON) else f"{plain}; {more.strip()}"
    return reasons


def _number(summary: Mapping[str, Any], name: str) -> float:
    try:
        return float(summary[name])
    except (KeyError, ValueError):
        return math.nan


def _fault(run: side.Run, time_limit_s: float) -> str:
    # Last comes what stopped it: a Python exception on standard error, or what Vela only printed.
    lines = [line.strip() for line in (run.stdout + run.stderr).splitlines()]
    told = [line for line in lines if re.search(r"error|failed|invalid", line, re.IGNORECASE) and not line.startswith("Warning")]
    if run.status is not None and run.status >= 0 and told:
        return f"Vela can't compile the model: {told[-1]:.300}"
    return run.fault("Vela", time_limit_s)
