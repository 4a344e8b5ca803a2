"""The example pipelines, each whole on LocalDagRunner: from raw records to a pushed edge model."""

import importlib
import json
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
    "text": {"REVERSE_V2", "STRIDED_SLICE", "CONCATENATION", "LOGISTIC"},
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
