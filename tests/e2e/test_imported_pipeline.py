"""A pipeline that starts from a model file of Keras 3, with gated variants of which the best is pushed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tfx.orchestration.local.local_dag_runner import LocalDagRunner

from tfx_edge.pipelines.runs import Output, latest_outputs

Outputs = dict[tuple[str, str], Output]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outputs]:
    """The imported model's pipeline, its file written by Keras 3 in a process of its own."""
    from tfx_edge.pipelines.imported import create_pipeline
    from tfx_edge.pipelines.sensor.data import write_examples

    root = tmp_path_factory.mktemp("imported")
    write_examples(root / "data")
    file = root / "sensor.keras"
    subprocess.run([sys.executable, str(Path(__file__).parent.parent / "support" / "keras3_sensor.py"), str(file)], check=True)
    LocalDagRunner().run(create_pipeline(str(root), str(root / "data"), str(file)))
    return root, latest_outputs(root / "metadata.db", "imported")


def test_the_smallest_blessed_variant_of_an_imported_model_is_pushed_and_the_others_stay_in_the_metadata(
    imported: tuple[Path, Outputs],
) -> None:
    root, outputs = imported
    selection = json.loads((Path(outputs["ModelSelector", "report"].uri) / "selection.json").read_text())
    reports = {
        name: json.loads((Path(outputs[f"EdgeValidator.{name}", "report"].uri) / "report.json").read_text())
        for name in ("int8", "pruned", "shared")
    }
    sizes = {name: report["gzip_bytes"] for name, report in reports.items() if report["blessed"]}
    assert len(selection["candidates"]) == 3 and len(sizes) >= 2, reports
    best = min(sizes, key=lambda name: sizes[name])
    [pushed] = (root / "pushed").glob("*/tflite")
    assert pushed.read_bytes() == (Path(outputs[f"TFLiteExporter.{best}", "model"].uri) / "Format-Serving" / "tflite").read_bytes()
    assert selection["candidates"][0]["validator"] == f"EdgeValidator.{best}"
