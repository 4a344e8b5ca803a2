"""OpenTelemetry metrics: the SDK's in-memory reader, the console exporter that the environment names, and nothing at all."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import metrics as api
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from tfx_edge.observability import metrics, running
from tfx_edge.schemas import RunInfo

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "observability.md"


@pytest.fixture(scope="module")
def reader() -> InMemoryMetricReader:
    """Of a provider that the process set up itself."""
    made = InMemoryMetricReader()
    api.set_meter_provider(MeterProvider(metric_readers=[made]))
    return made


def points(reader: InMemoryMetricReader) -> dict[str, list[tuple[Any, dict[str, Any]]]]:
    """Values and attributes by metric."""
    found: dict[str, list[tuple[Any, dict[str, Any]]]] = {}
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data else ():
        for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
            for point in metric.data.data_points:
                found.setdefault(metric.name, []).append((getattr(point, "value", getattr(point, "sum", None)), dict(point.attributes)))
    return found


def test_values_are_marked_with_pipeline_and_component_and_not_with_the_run(reader: InMemoryMetricReader) -> None:
    with running(RunInfo(pipeline="digits", run_id="run-1", component="EdgeValidator")):
        metrics.measure("tfx_edge.component.duration", 2.5, outcome="done")
        metrics.measure("tfx_edge.component.duration", 1.5, outcome="done")
        metrics.count("tfx_edge.gate.verdicts", blessed=True)
        metrics.count("tfx_edge.gate.verdicts", blessed=True)
    metrics.measure("tfx_edge.channel.release", 3, channel="canary")
    metrics.measure("tfx_edge.channel.release", 4, channel="canary")
    metrics.flush()
    found, marks = points(reader), {"tfx_edge.pipeline": "digits", "tfx_edge.component": "EdgeValidator"}
    assert found["tfx_edge.component.duration"] == [(4.0, {**marks, "outcome": "done"})]
    assert found["tfx_edge.gate.verdicts"] == [(2, {**marks, "blessed": True})]
    assert found["tfx_edge.channel.release"] == [(4, {"channel": "canary"})]


SCRIPT = """
import sys
from tfx_edge.observability import metrics
metrics.measure("tfx_edge.model.size", 24312)
metrics.flush()
print("imported" if "opentelemetry.sdk.metrics" in sys.modules else "off", file=sys.stderr)
"""


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, cwd="/")


def test_an_exporter_that_opentelemetrys_own_variables_name_gets_them() -> None:
    done = run(OTEL_METRICS_EXPORTER="console", OTEL_SERVICE_NAME="edge-builds")
    document, _ = json.JSONDecoder().raw_decode(done.stdout)
    [resource] = document["resource_metrics"]
    [metric] = resource["scope_metrics"][0]["metrics"]
    assert resource["resource"]["attributes"]["service.name"] == "edge-builds"
    assert (metric["name"], metric["unit"], metric["data"]["data_points"][0]["value"]) == ("tfx_edge.model.size", "By", 24312)


@pytest.mark.parametrize(
    "environment", [{}, {"OTEL_METRICS_EXPORTER": "none"}, {"OTEL_METRICS_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}]
)
def test_without_an_exporter_opentelemetry_isnt_even_imported(environment: dict[str, str]) -> None:
    done = run(**environment)
    assert (done.stdout, done.stderr) == ("", "off\n")


@pytest.mark.parametrize("environment", [{"OTEL_METRICS_EXPORTER": "otlp,console"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}])
def test_an_exporter_that_isnt_installed_is_a_line_and_no_failure(environment: dict[str, str]) -> None:
    done = run(**environment)
    assert (
        done.stdout == ""
        and done.stderr.count("no metrics: there is no exporter 'otlp'; install its package, for example opentelemetry-exporter-otlp-json")
        == 1
    )


def test_without_the_extra_there_is_a_line_that_names_it() -> None:
    block = "import importlib.abc, sys\nclass Gone(importlib.abc.MetaPathFinder):\n    def find_spec(self, name, path, target=None):\n"
    block += "        if name.startswith('opentelemetry'): raise ModuleNotFoundError(name, name=name)\nsys.meta_path.insert(0, Gone())\n"
    environment = {"OTEL_METRICS_EXPORTER": "console"}
    done = subprocess.run([sys.executable, "-c", block + SCRIPT], env=environment, capture_output=True, text=True, check=True, cwd="/")
    assert done.stderr.count("pip install 'tfx-edge[otel]'") == 1 and done.stdout == ""


def test_the_documentation_has_every_metric_with_its_unit() -> None:
    rows = [line.split("|")[1:4] for line in DOCUMENTATION.read_text().splitlines() if line.startswith("| `tfx_edge.")]
    told = {name.strip(" `"): (kind.strip(), unit.strip(" `")) for name, kind, unit in rows}
    assert told == {name: (kind, unit) for name, (kind, unit, _) in metrics.INSTRUMENTS.items()}
