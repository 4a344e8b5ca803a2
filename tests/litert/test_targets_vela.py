"""A model compiled by Vela: what is measured is what Vela prints, and what stays on the CPU is named with Vela's reason."""

import re
import subprocess
from pathlib import Path

import pytest
from target_models import classifier, features, float_classifier, float_ended_classifier, needs_tools, top_k

from tfx_edge.litert import inspect
from tfx_edge.litert.targets import check, side
from tfx_edge.litert.targets.vela import outcome
from tfx_edge.schemas.target import Target, TargetProfile

pytestmark = needs_tools
PROFILES = ("ethos-u55", "ethos-u65", "ethos-u85")
U55 = Target(profile="ethos-u55")


def ask_vela(folder: Path, flatbuffer: bytes, target: Target) -> str:
    """What the command prints for a model."""
    profile = target.resolve()
    (folder / "model.tflite").write_bytes(flatbuffer)
    python = side.find_python("ethosu")
    assert python is not None
    command = [python, "-m", "ethosu.vela", "model.tflite", "--config", "Arm/vela.ini", "--accelerator-config", profile.accelerators[0]]
    command += ["--system-config", profile.system_config, "--memory-mode", profile.memory_mode]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_measured_is_what_vela_prints(profile: str, tmp_path: Path) -> None:
    target = Target(profile=profile)
    report = check(classifier(), target, {})
    assert report.reasons == ()
    printed = ask_vela(tmp_path, classifier(), target)
    for name, words in {
        "sram_bytes": "Total SRAM used",
        "dram_bytes": "Total DRAM used",
        "flash_bytes": "Total Off-chip Flash used",
    }.items():
        kib = re.search(rf"{words} +([\d.]+) KiB", printed)
        assert report.measurements[name] == pytest.approx(float(kib[1]) * 1024 if kib else 0, abs=6), name  # printed to 0.01 KiB
    (seconds,) = (row.split(",")[15] for row in next((tmp_path / "output").glob("*summary*.csv")).read_text().splitlines()[1:])
    assert report.measurements["npu_time_ms"] == pytest.approx(float(seconds) * 1000)
    assert report.measurements["npu_share"] == 1 and report.measurements["unsupported_ops"] == 0
    assert "CPU operators = 0" in printed
    assert [(op.operator, op.runs_on) for op in report.ops] == [("FULLY_CONNECTED", "NPU"), ("SOFTMAX", "NPU")]


def test_an_operator_that_stays_on_the_cpu_is_named_with_velas_reason(tmp_path: Path) -> None:
    report = check(top_k(), U55, {})
    (left,) = (op for op in report.ops if op.runs_on == "CPU")
    assert (left.operator, left.count, left.reason, left.output) == ("TOPK_V2", 1, "Unsupported opType", "best_tensor")
    assert "operator: TOPK_V2, ofm: 'best_tensor'\nReason: Unsupported opType\n" in ask_vela(tmp_path, top_k(), U55)
    assert report.measurements["unsupported_ops"] == 1
    assert report.measurements["npu_share"] == 0.75
    assert report.reasons == ("ethos-u55: unsupported_ops 1, max_unsupported_ops is 0; TOPK_V2 (1): Unsupported opType",)


def test_the_conversions_of_a_float_ended_model_are_left_to_the_cpu_and_told() -> None:
    report = check(float_ended_classifier(), U55, {})
    assert {op.operator: op.runs_on for op in report.ops} == {
        "QUANTIZE": "CPU",
        "FULLY_CONNECTED": "NPU",
        "SOFTMAX": "NPU",
        "DEQUANTIZE": "CPU",
    }
    assert check(float_ended_classifier(), Target(profile="ethos-u55", max_unsupported_ops=2), {}).reasons == ()
    assert check(float_ended_classifier(), Target(profile="ethos-u55", min_npu_share=0.5), {}).reasons == ()
    (reason,) = check(float_ended_classifier(), Target(profile="ethos-u55", min_npu_share=0.51), {}).reasons
    assert reason.startswith("ethos-u55: npu_share 0.5, min_npu_share is 0.51; QUANTIZE (1): ")


def test_an_operator_that_vela_itself_adds_on_the_cpu_counts_against_the_model() -> None:
    found = outcome("Vela", classifier(), float_ended_classifier(), {}, {})
    assert [op.runs_on for op in found.ops] == ["CPU", "CPU"]
    assert found.measurements == {"unsupported_ops": 4, "npu_share": 0}


def test_of_a_model_with_nothing_on_the_npu_no_memory_and_time_is_measured() -> None:
    report = check(float_classifier(), Target(profile="ethos-u55", max_sram_bytes=10**9, max_npu_time_ms=10**9, min_npu_share=0), {})
    assert report.measurements == {"unsupported_ops": 2, "npu_share": 0}
    assert report.reasons == (
        "ethos-u55: max_sram_bytes 1e+09 is set, and sram_bytes could not be measured",
        "ethos-u55: max_npu_time_ms 1e+09 is set, and npu_time_ms could not be measured",
    )


@pytest.mark.parametrize(
    ("budget", "measured"), [("max_sram_bytes", "sram_bytes"), ("max_flash_bytes", "flash_bytes"), ("max_npu_time_ms", "npu_time_ms")]
)
def test_a_budget_passes_at_what_is_measured_and_fails_below(budget: str, measured: str) -> None:
    value = check(classifier(), U55, {}).measurements[measured]
    value = int(value) if measured.endswith("bytes") else value
    below = value - 1 if isinstance(value, int) else value * 0.999
    assert check(classifier(), Target(profile="ethos-u55", **{budget: value}), {}).reasons == ()
    (reason,) = check(classifier(), Target(profile="ethos-u55", **{budget: below}), {}).reasons
    assert reason.startswith(f"ethos-u55: {measured} {value:.10g}, {budget} is ")


def test_the_compiled_model_is_written_and_the_same_each_time(tmp_path: Path) -> None:
    paths = [tmp_path / "model_vela.tflite", tmp_path / "again.tflite"]
    reports = [check(classifier(), U55, {}, compiled=path) for path in paths]
    assert reports[0] == reports[1]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert inspect.operators(paths[0].read_bytes()) == {"custom:ethos-u": 1}


@pytest.mark.parametrize("profile", PROFILES)
def test_vela_has_every_accelerator_of_a_profile(profile: str) -> None:
    for accelerator in Target(profile=profile).resolve().accelerators:
        report = check(classifier(), Target(profile=profile, accelerator=accelerator), {})
        assert report.reasons == () and f"({accelerator}, " in report.tool


def test_settings_of_the_target_replace_the_profiles() -> None:
    target = Target(profile="ethos-u55", system_config="Ethos_U55_Deep_Embedded", memory_mode="Sram_Only")
    report = check(classifier(), target, {})
    assert report.reasons == () and "Ethos_U55_Deep_Embedded, Sram_Only" in report.tool
    assert report.measurements["npu_time_ms"] != check(classifier(), U55, {}).measurements["npu_time_ms"]


def test_a_configuration_file_of_ones_own_is_read_wherever_vela_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = side.find_python("ethosu")
    assert python is not None
    code = "import ethosu, pathlib; print(pathlib.Path(list(ethosu.__path__)[0], 'config_files/Arm/vela.ini').read_text())"
    text = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (tmp_path / "mine.ini").write_text(text.replace("System_Config.Ethos_U55_Deep_Embedded", "System_Config.Mine"))
    monkeypatch.chdir(tmp_path)
    mine = TargetProfile(
        name="mine", tool="vela", accelerators=("ethos-u55-64",), system_config="Mine", memory_mode="Shared_Sram", vela_config="mine.ini"
    )
    assert check(classifier(), Target(profile=mine), {}).reasons == ()
    (reason,) = check(classifier(), Target(profile=mine, system_config="Yours"), {}).reasons
    assert reason.startswith("mine: Vela can't compile the model: ") and "Section System_Config.Yours not found" in reason


def test_a_model_that_takes_too_long_is_a_reason_and_leaves_no_file(tmp_path: Path) -> None:
    report = check(classifier(), U55, features(), time_limit_s=0.01, compiled=tmp_path / "compiled")
    assert report.reasons == ("ethos-u55: Vela didn't finish within 0.01 s; raise the time limit if the model is large",)
    assert list(tmp_path.iterdir()) == []


def test_where_vela_is_missing_the_reason_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(side.VARIABLE, "/no/such/python")
    (reason,) = check(classifier(), U55, {}).reasons
    assert reason.startswith("ethos-u55: ethos-u-vela isn't installed; pip install 'tfx-edge[targets]' ")
