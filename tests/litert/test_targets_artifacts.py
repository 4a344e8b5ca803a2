"""The files that a target's toolchain takes: made by the real tools, the same each time, and none where the target can't take the model."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.tools import flatbuffer_utils
from firmware import needs_compiler, run_firmware
from target_models import ask_tflm, classifier, features, float_classifier, float_ended_classifier, model, needs_tools, top_k
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import inspect
from tfx_edge.litert.golden import golden_vectors
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.targets import check, side
from tfx_edge.litert.targets.artifacts import TargetArtifacts, golden_features, target_artifacts
from tfx_edge.litert.targets.micro_source import micro_source
from tfx_edge.litert.targets.vela import outcome
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.target import Target


def written(made: TargetArtifacts) -> dict[str, bytes]:
    return {name: b"".join(chunks) for name, chunks in made.files.items()}


@needs_tools
def test_each_target_gets_its_files_and_a_report_of_what_was_measured() -> None:
    made = target_artifacts(classifier(), ["litert-cpu", "tflm", "edgetpu", Target(profile="ethos-u65")], features())
    assert list(made.files) == ["model.h", "model.cc", "model_vela.tflite"]
    for report in made.reports:
        judged = check(classifier(), Target(profile=report.profile), features())
        assert report == judged
    assert [report.profile for report in made.reports] == ["tflm", "ethos-u65"]


def test_targets_without_a_file_of_their_own_need_no_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(side.VARIABLE, "/no/such/python")
    for targets in ([], ["litert-cpu", "edgetpu", "gpu-delegate", "npu-qualcomm"]):
        assert target_artifacts(classifier(), targets, {}) == TargetArtifacts({}, ())


@needs_tools
def test_the_model_runs_in_the_arena_that_the_source_suggests(tmp_path: Path) -> None:
    header = written(target_artifacts(classifier(), ["tflm"], features(), "digits"))["model.h"].decode()
    assert "namespace digits {" in header
    arena, measured = (int(re.findall(pattern, header)[0]) for pattern in (r"kArenaSize = (\d+);", r"the model ran was (\d+),"))
    assert ask_tflm(tmp_path, classifier(), arena) is not None
    assert measured == check(classifier(), Target(profile="tflm"), features()).measurements["arena_bytes"]
    assert measured < arena


@needs_tools
@needs_compiler
def test_the_array_is_the_model_that_was_given(tmp_path: Path) -> None:
    source = target_artifacts(float_ended_classifier(), ["tflm"], features(), "digits").files["model.cc"]
    program = "#include <cstdio>\nint main() { return std::fwrite(digits::kModel, 1, digits::kModelSize, stdout) == 0; }\n"
    assert run_firmware(tmp_path, source, program) == float_ended_classifier()


@needs_tools
def test_the_files_are_the_same_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = ["tflm", "ethos-u55"]
    first = target_artifacts(classifier(), targets, features())
    monkeypatch.chdir(tmp_path)
    again = target_artifacts(classifier(), targets, features(seed=1))  # other examples need no other arena
    assert written(again) == written(first)
    assert list(tmp_path.iterdir()) == []


@needs_tools
def test_vela_compiles_for_the_accelerator_that_the_target_names(tmp_path: Path) -> None:
    target = Target(profile="ethos-u55", accelerator="ethos-u55-32")
    (report,) = (made := target_artifacts(classifier(), [target], {})).reports
    assert "(ethos-u55-32, " in report.tool
    check(classifier(), target, {}, compiled=tmp_path / "compiled")
    assert written(made)["model_vela.tflite"] == (tmp_path / "compiled").read_bytes()


@needs_tools
def test_what_vela_compiles_becomes_source_too() -> None:
    compiled = written(target_artifacts(top_k(), ["ethos-u55"], {}))["model_vela.tflite"]
    with pytest.raises(EdgeError, match="no operator TOPK_V2;"):
        micro_source(compiled, "digits")
    compiled = written(target_artifacts(classifier(), ["ethos-u55"], {}))["model_vela.tflite"]
    assert "auto status = resolver.AddEthosU();" in micro_source(compiled, "digits").header.decode()


@needs_tools
def test_budgets_are_the_gates_and_stop_no_export() -> None:
    made = target_artifacts(
        classifier(), [Target(profile="tflm", max_arena_bytes=1), Target(profile="ethos-u55", max_sram_bytes=1)], features()
    )
    assert len(made.files) == 3
    assert [report.reasons for report in made.reports] == [(), ()]


@needs_tools
def test_a_part_on_the_npu_is_compiled_and_the_rest_reported() -> None:
    (report,) = target_artifacts(top_k(), ["ethos-u55"], {}).reports
    assert report.measurements["npu_share"] == 0.75
    assert [op.operator for op in report.ops if op.runs_on == "CPU"] == ["TOPK_V2"]


def signatures(*names: str) -> bytes:
    x, y = Tensor("x", "float32", (1, 8)), Tensor("y", "float32", (1, 8))
    return pack([Graph(name, (x,), (y,), (Op("ABS", (x,), (y,)),)) for name in names])


def open_sized() -> bytes:
    x, y = (Tensor(name, "int8", (None, None), 0.1) for name in "xy")
    return model((x,), (y,), [Op("ABS", (x,), (y,))])


@needs_tools
def test_of_several_signatures_the_main_graphs_runs_on_the_device() -> None:
    assert list(target_artifacts(signatures("serving_default", "other"), ["tflm"], features()).files) == ["model.h", "model.cc"]


@needs_tools
@pytest.mark.parametrize(
    ("flatbuffer", "target", "message"),
    [
        (top_k(), "tflm", "TensorFlow Lite Micro has no operator TOPK_V2; replace the layers that use them"),
        (open_sized(), "tflm", "'x_tensor' has the open shape [-1, -1], but "),
        (signatures("other", "serving_default"), "tflm", "signature 'serving_default' isn't the main graph, "),
        (classifier()[:900], "tflm", "a damaged LiteRT flatbuffer (900 bytes)"),
        (model((), (), []), "tflm", "the model has no operator, "),
        (float_classifier(), "ethos-u55", "nothing of the model would run on the NPU: FULLY_CONNECTED (1): "),
        (open_sized(), "ethos-u55", "nothing of the model would run on the NPU: ABS (1): Dynamic non-batch dimension "),
        (classifier()[:900], "ethos-u55", "a damaged LiteRT flatbuffer (900 bytes)"),
        (b"PK", "ethos-u55", "not a LiteRT flatbuffer "),
    ],
)
def test_a_target_that_cannot_take_the_model_is_an_error_of_one_line(flatbuffer: bytes, target: str, message: str) -> None:
    with pytest.raises(EdgeError) as raised:
        target_artifacts(flatbuffer, [target], features())
    assert str(raised.value).startswith(f"target '{target}': {message}") and "\n" not in str(raised.value)


@needs_tools
def test_two_targets_of_one_file_are_refused() -> None:
    with pytest.raises(
        EdgeError, match="^target 'ethos-u65': another target writes model_vela.tflite already; export a bundle for each board"
    ):
        target_artifacts(classifier(), ["ethos-u55", "ethos-u65"], {})


def test_a_namespace_that_is_none_is_told() -> None:
    with pytest.raises(EdgeError, match="namespace 'my digits': "):
        target_artifacts(classifier(), ["tflm"], features(), "my digits")


@pytest.mark.parametrize("target", ["tflm", "ethos-u55"])
def test_where_the_tool_is_missing_the_error_says_how_to_get_it(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(side.VARIABLE, "/no/such/python")
    with pytest.raises(EdgeError, match=rf"^target '{target}': .* isn't installed; pip install 'tfx-edge\[targets\]' "):
        target_artifacts(classifier(), [target], features())


@needs_tools
def test_an_npu_operator_without_an_output_is_no_model() -> None:
    # Vela makes some where layers compute shapes; here its result for a model without any is changed so.
    compiled = written(target_artifacts(classifier(), ["ethos-u55"], {}))["model_vela.tflite"]
    parsed = inspect.parse(compiled)
    parsed.subgraphs[0].operators[0].outputs = np.array([], np.int32)
    found = outcome("Vela", classifier(), bytes(flatbuffer_utils.convert_object_to_bytearray(parsed)), {}, {})
    assert found.compiled is None and found.measurements == {}
    assert found.reasons == (
        "Vela made an NPU operator without an output, so the model would compute something else; export it with a fixed batch, "
        "so that no shape is computed",
    )


@pytest.mark.parametrize("make", [classifier, float_classifier, float_ended_classifier])
@pytest.mark.parametrize("batch", [1, 3])
def test_golden_inputs_come_back_as_the_real_values_that_they_stand_for(make: Any, batch: int) -> None:
    flatbuffer = make() if batch == 1 or make is float_ended_classifier else make(batch)
    examples = features(2 * batch)
    back = golden_features(flatbuffer, golden_vectors(flatbuffer, examples=examples))
    runner = Runner(flatbuffer)
    np.testing.assert_array_equal(runner.raw_inputs(back)["x"], runner.raw_inputs(examples)["x"])
    assert back["x"].dtype == np.float32
