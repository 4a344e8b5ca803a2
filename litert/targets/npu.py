"""A model compiled ahead of time for a phone's or PC's NPU, where the vendor's kit is installed.

The kits download themselves when they are installed, which nothing here ever starts: without a kit there is a reason and no more.
"""

import importlib.metadata
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

from tfx_edge.litert.targets import side
from tfx_edge.litert.targets.outcome import Outcome
from tfx_edge.schemas.target import Target

# Runs in a child process, since the compiler is the vendor's and native. Prints what became of the operators, as JSON.
_CHILD = """
import importlib, json, sys, tempfile
tempfile.tempdir = "."  # where it leaves what the compiler says
from ai_edge_litert.aot.aot_compile import aot_compile
from ai_edge_litert.aot.core import aot_types
vendor, chip = sys.argv[1:]
module = importlib.import_module(f"ai_edge_litert.aot.vendors.{vendor}.target")
importlib.import_module(f"ai_edge_litert.aot.vendors.{vendor}.{vendor}_backend")
model = aot_types.Model.create_from_bytes(open("model.tflite", "rb").read())
result = aot_compile(model, output_dir="out", target=[module.Target(module.SocModel(chip))], keep_going=True)
stats = [s for _, m in result.models_with_backend if m.partition_stats for s in m.partition_stats.subgraph_stats]
print(json.dumps({
    "faults": [str(why) for _, why in result.failed_backends],
    "on_npu": sum(s.num_ops_offloaded for s in stats),
    "total": sum(s.num_total_ops for s in stats),
}))
"""


def compile_npu(model: bytes, target: Target, time_limit_s: float) -> Outcome:
    """Compiles a model with `ai_edge_litert.aot`.

    Returns:
        `npu_share` of the operators and `unsupported_ops`, the number of those that the compiler leaves to the CPU.
    """
    profile = target.resolve()
    chip = target.accelerator or profile.accelerators[0]
    tool = f"ai_edge_litert.aot {importlib.metadata.version('ai-edge-litert')} ({profile.vendor}, {chip})"
    kit = str(profile.kit)
    if importlib.util.find_spec(kit) is None:
        package = kit.replace("_", "-")
        return Outcome(tool, reasons=(f"the vendor's kit {package} isn't installed here; install it, which downloads it, where this runs",))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.tflite").write_bytes(model)
        run = side.run(Path(sys.executable), ["-c", _CHILD, str(profile.vendor), chip], folder, time_limit_s)
        try:
            found = json.loads(run.stdout.splitlines()[-1]) if run.status == 0 else None
        except (IndexError, ValueError):
            found = None
        log = "\n".join(file.read_text(errors="replace") for file in sorted(folder.glob("*.error")))
    if found is None:
        return Outcome(tool, reasons=(run.fault("the vendor's compiler", time_limit_s),))
    if found["faults"] or not found["total"]:
        # The fault only names the log, in which the last lines but the runtime's own tell what it was doing.
        told = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("INFO")][-2:]
        told = told or [str(fault) for fault in found["faults"]] or ["it compiled nothing"]
        return Outcome(tool, reasons=(f"the vendor's compiler failed: {' '.join(' '.join(told).split()):.300}",))
    left = found["total"] - found["on_npu"]
    return Outcome(tool, {"unsupported_ops": float(left), "npu_share": found["on_npu"] / found["total"]})
