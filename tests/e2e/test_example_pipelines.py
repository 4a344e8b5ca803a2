"""The example pipelines, each whole on LocalDagRunner: from raw records to a pushed edge model."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tfx.orchestration.local.local_dag_runner import LocalDagRunner

from tfx_edge.litert.runner import Runner
from tfx_edge.pipelines.runs import Output, latest_outputs

Outputs = dict[tuple[str, str], Output]

# what stays float in each, all else being int8
FLOAT_OPERATORS = {
    "penguins": set(),
    "taxi": {"ONE_HOT", "REDUCE_MAX"},
    "images": set(),
    "text": {"GATHER", "REVERSE_V2", "STRIDED_SLICE", "UNIDIRECTIONAL_SEQUENCE_LSTM", "CONCATENATION", "LOGISTIC"},
    "sensor": {"EXPAND_DIMS"},
}


def run(root: Path, pipeline: object, name: str) -> Outputs:
    LocalDagRunner().run(pipeline)
    return latest_outputs(root / "metadata.db", name)


def report_of(outputs: Outputs, component: str = "EdgeValidator") -> dict:
    return json.loads((Path(outputs[component, "report"].uri) / "report.json").read_text())


@pytest.fixture(scope="module", params=sorted(FLOAT_OPERATORS))
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Outputs]:
    """One run of an example pipeline: its name, root and outputs."""
    name, root = request.param, tmp_path_factory.mktemp(request.param)
    importlib.import_module(f"tfx_edge.pipelines.{name}.data").write_examples(root / "data")
    pipeline = importlib.import_module(f"tfx_edge.pipelines.{name}").create_pipeline(str(root), str(root / "data"))
    return name, root, run(root, pipeline, name)


def test_an_example_pipeline_ends_with_a_pushed_model_that_is_int8_but_for_what_has_a_reason(
    example: tuple[str, Path, Outputs],
) -> None:
    name, root, outputs = example
    report = report_of(outputs)
    assert report["blessed"], report["reasons"]
    [pushed] = (root / "pushed").glob("*/tflite")
    exported = Path(outputs["TFLiteExporter", "model"].uri) / "Format-Serving" / "tflite"
    assert pushed.read_bytes() == exported.read_bytes()
    assert Runner(pushed.read_bytes()).signature.input_names
    plan = json.loads((Path(outputs["Quantizer", "quantization_plan"].uri) / "plan.json").read_text())
    assert {op["op"] for op in plan["float_ops"]} == FLOAT_OPERATORS[name]
    assert all(op["reason"] for op in plan["float_ops"])


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outputs]:
    """The imported model's pipeline, its file written by Keras 3 in a process of its own."""
    from tfx_edge.pipelines.imported import create_pipeline
    from tfx_edge.pipelines.sensor.data import write_examples

    root = tmp_path_factory.mktemp("imported")
    write_examples(root / "data")
    file = root / "sensor.keras"
    subprocess.run([sys.executable, str(Path(__file__).parent.parent / "support" / "keras3_sensor.py"), str(file)], check=True)
    return root, run(root, create_pipeline(str(root), str(root / "data"), str(file)), "imported")


def test_the_smallest_blessed_variant_of_an_imported_model_is_pushed_and_the_others_stay_in_the_metadata(
    imported: tuple[Path, Outputs],
) -> None:
    root, outputs = imported
    selection = json.loads((Path(outputs["ModelSelector", "report"].uri) / "selection.json").read_text())
    reports = {name: report_of(outputs, f"EdgeValidator.{name}") for name in ("int8", "pruned", "shared")}
    sizes = {name: report["gzip_bytes"] for name, report in reports.items() if report["blessed"]}
    assert len(selection["candidates"]) == 3 and len(sizes) >= 2, reports
    best = min(sizes, key=lambda name: sizes[name])
    [pushed] = (root / "pushed").glob("*/tflite")
    assert pushed.read_bytes() == (Path(outputs[f"TFLiteExporter.{best}", "model"].uri) / "Format-Serving" / "tflite").read_bytes()
    assert selection["candidates"][0]["validator"] == f"EdgeValidator.{best}"
