"""What executors tell while they run: marked log lines, metrics, notifications, a profile; and nothing that they aren't asked for."""

import inspect
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gate_data
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from release_channels import Fleet, bundle, contents, exported
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.proto.orchestration import pipeline_pb2
from tfx.types import standard_artifacts
from webhook_server import Server, free_port, webhook_server

from tfx_edge.components import keys
from tfx_edge.components.edge_promoter.executor import Executor as EdgePromoter
from tfx_edge.components.observed import observed
from tfx_edge.observability import metrics
from tfx_edge.observability.logs import JsonFormatter
from tfx_edge.schemas import GateConfig, PromotionConfig, Threshold
from tfx_edge.schemas.artifact_types import CalibrationData

TOKEN = "T0K3N-abcdefgh"


class Sampler(BaseExecutor):
    """Logs, and leaves a number on its artifact, as CalibrationGen does."""

    @observed
    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:
        """Says how it was called."""
        logging.getLogger("tfx_edge").info("sampling")
        if exec_properties["fails"]:
            raise ValueError("no examples")
        output_dict["calibration_data"][0].set_int_custom_property("count", 50)
        output_dict["calibration_data"][0].set_string_custom_property("strategy", "uniform")


def sample(*, fails: bool = False) -> None:
    context = BaseExecutor.Context(
        unique_id="7",
        pipeline_info=pipeline_pb2.PipelineInfo(id="digits"),
        pipeline_node=pipeline_pb2.PipelineNode(node_info=pipeline_pb2.NodeInfo(id="CalibrationGen")),
        pipeline_run_id="run-1",
    )
    Sampler(context).Do({}, {"calibration_data": [CalibrationData()]}, {"fails": fails})


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    monkeypatch.setattr(metrics, "_provider", lambda: provider)  # OpenTelemetry takes one provider a process; test_metrics has it
    return reader


def points(reader: InMemoryMetricReader) -> dict[str, list[tuple[Any, dict[str, Any]]]]:
    found: dict[str, list[tuple[Any, dict[str, Any]]]] = {}
    data = reader.get_metrics_data()
    for metric in data.resource_metrics[0].scope_metrics[0].metrics if data else ():
        for point in metric.data.data_points:
            found.setdefault(metric.name, []).append((getattr(point, "value", getattr(point, "count", None)), dict(point.attributes)))
    return found


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    monkeypatch.setenv("TFX_EDGE_LOG", "json")
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(caplog.handler, "formatter", JsonFormatter())
    return caplog


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(line) for line in caplog.text.splitlines()]


def test_an_executors_lines_name_its_run_and_its_last_one_says_how_it_went(lines: pytest.LogCaptureFixture) -> None:
    sample()
    said, last = logged(lines)
    marks = {"pipeline": "digits", "run_id": "run-1", "component": "CalibrationGen", "execution_id": "7"}
    assert said["message"] == "sampling" and marks.items() <= said.items()
    assert last["outcome"] == "done" and last["seconds"] >= 0 and marks.items() <= last.items()


def test_a_failure_comes_through_and_is_a_line(lines: pytest.LogCaptureFixture, measured: InMemoryMetricReader) -> None:
    with pytest.raises(ValueError, match="no examples"):
        sample(fails=True)
    _, failed, last = logged(lines)
    assert failed["error"] == "ValueError: no examples" and failed["component"] == "CalibrationGen" and last["outcome"] == "failed"
    [(count, attributes)] = points(measured)["tfx_edge.component.duration"]
    assert (count, attributes["outcome"]) == (1, "failed")


def test_numbers_on_the_outputs_are_metrics(measured: InMemoryMetricReader) -> None:
    sample()
    marks = {"tfx_edge.pipeline": "digits", "tfx_edge.component": "CalibrationGen"}
    assert points(measured)["tfx_edge.calibration.examples"] == [(50, marks)]
    assert points(measured)["tfx_edge.component.duration"] == [(1, {**marks, "outcome": "done"})]


def test_a_profile_is_written_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFX_EDGE_PROFILE", str(tmp_path / "profiles"))
    monkeypatch.setenv("TFX_EDGE_PROFILE_TOOLS", "lines,memory")
    sample()
    with pytest.raises(ValueError, match="no examples"):
        sample(fails=True)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == {
        f"profiles/{folder}/{file}" for folder in ("CalibrationGen", "CalibrationGen-2") for file in ("lines.txt", "memory.txt")
    }


def test_every_executor_of_the_suite_is_observed() -> None:
    import importlib

    import tfx_edge.components

    folder = Path(tfx_edge.components.__file__).parent
    names = sorted(path.parent.name for path in folder.glob("*/executor.py"))
    assert len(names) >= 12
    for name in names:
        do = importlib.import_module(f"tfx_edge.components.{name}.executor").Executor.Do
        assert inspect.unwrap(do).__code__.co_filename.endswith(f"{name}/executor.py"), name


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A webhook that every event goes to, as the whole Notification."""
    (tmp_path / "notify.json").write_text(json.dumps({"hooks": [{"kind": "webhook", "url": "env:HOOK", "body": None, "retries": 0}]}))
    monkeypatch.setenv("TFX_EDGE_NOTIFY", str(tmp_path / "notify.json"))
    with webhook_server() as server:
        monkeypatch.setenv("HOOK", f"{server.url}/{TOKEN}")
        yield server


def promote(folder: Path, fleet: Fleet, *, blessed: int = 1) -> Any:
    artifacts = {}
    for number, (name, kind) in enumerate(
        (("model", standard_artifacts.Model), ("blessing", standard_artifacts.ModelBlessing), ("pushed", standard_artifacts.PushedModel))
    ):
        (folder / name).mkdir(parents=True)
        artifacts[name] = kind()
        artifacts[name].uri, artifacts[name].id = str(folder / name), number
    exported(folder / "model", bundle(1))
    artifacts["blessing"].set_int_custom_property("blessed", blessed)
    artifacts["blessing"].set_string_custom_property("current_model", artifacts["model"].uri)
    config = PromotionConfig(channels=str(fleet.folder / "channels"), keyring=str(fleet.folder / "keys" / "keyring.json"))
    inputs = {keys.MODEL: [artifacts["model"]], keys.MODEL_BLESSING: [artifacts["blessing"]]}
    EdgePromoter().Do(inputs, {keys.PUSHED_MODEL: [artifacts["pushed"]]}, {keys.CONFIG: config.to_json()})
    return artifacts["pushed"]


def test_a_promotion_is_told_once_and_its_webhook_is_in_no_file_and_no_property(
    tmp_path: Path, told: Server, measured: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fleet = Fleet(tmp_path / "fleet").create("canary")
    promote(tmp_path / "unblessed", fleet, blessed=0)
    pushed = promote(tmp_path / "first", fleet)
    promote(tmp_path / "again", fleet)  # the same model is on offer already
    [(_, _, event)] = told.requests
    assert (event["event"], event["channel"], event["release"], event["model_digest"]) == ("promoted", "canary", 1, bundle(1).digest)
    assert points(measured)["tfx_edge.channel.release"] == [(1, {"channel": "canary"})]
    everything = {**contents(tmp_path / "fleet"), **contents(tmp_path / "first")}
    assert not any(TOKEN.encode() in content or told.url.encode() in content for content in everything.values())
    assert TOKEN not in str(pushed.mlmd_artifact) and TOKEN not in caplog.text


def test_a_promotion_stands_where_nobody_can_be_told(
    tmp_path: Path, told: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOOK", f"http://127.0.0.1:{free_port()}/{TOKEN}")
    fleet = Fleet(tmp_path / "fleet").create("canary")
    assert promote(tmp_path / "first", fleet).get_string_custom_property("pushed_version") == "1"
    assert "not told that canary: release 1 is on offer" in caplog.text and TOKEN not in caplog.text


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A float model as a Trainer saves it, and its flatbuffer."""
    model, trainer = gate_data.train(gate_data.examples(3000, seed=1)), tmp_path_factory.mktemp("trainer")
    model.save(trainer / "Format-Serving")
    return SimpleNamespace(baseline=str(trainer), model=gate_data.flatbuffer(model), data=gate_data.examples(120))


def test_both_verdicts_are_told_with_the_models_figures(
    tmp_path: Path, told: Server, measured: InMemoryMetricReader, gated: SimpleNamespace
) -> None:
    for name, bound in (("good", 0.1), ("bad", 1.0)):
        config = GateConfig(label_key="label", thresholds=(Threshold(metric="SparseCategoricalAccuracy", lower_bound=bound),))
        config = config.model_copy(update={"layer_examples": 0})
        gate_data.run_gate(tmp_path / name, **vars(gated), config=config)
    (_, _, good), (_, _, bad) = told.requests
    assert (good["event"], good["reasons"], good["size_bytes"]) == ("blessed", [], len(gated.model))
    assert good["metric"] == "SparseCategoricalAccuracy" and good["candidate"] == pytest.approx(good["baseline"], abs=1e-3)
    assert good["model"] == str(tmp_path / "good" / "edge_model") and good["summary"].startswith("a model: blessed SparseCategoricalAcc")
    assert bad["event"] == "not_blessed" and bad["reasons"] and bad["summary"] == f"a model: not blessed: {bad['reasons'][0]}"
    figures = points(measured)
    assert sorted((value, attributes["blessed"]) for value, attributes in figures["tfx_edge.gate.verdicts"]) == [(1, False), (1, True)]
    [(difference, attributes)] = figures["tfx_edge.gate.difference"]
    assert difference == pytest.approx(0, abs=1e-3) and attributes["metric"] == "SparseCategoricalAccuracy"
