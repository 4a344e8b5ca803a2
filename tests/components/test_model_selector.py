"""The choice among gated candidates, and the component that copies the chosen one."""

import json
from pathlib import Path

import pytest
from tfx.types import standard_artifacts

from tfx_edge.components import keys
from tfx_edge.components.edge_validator.blessing import write_blessing
from tfx_edge.components.model_selector.component import ModelSelector
from tfx_edge.components.model_selector.executor import Executor
from tfx_edge.components.model_selector.selection import Candidate, select
from tfx_edge.schemas import EdgeError, GateConfig, GateReport, MetricComparison, SelectionConfig, SelectionReport, Threshold
from tfx_edge.schemas.artifact_types import EdgeReport

ACCURACY = Threshold(metric="BinaryAccuracy", max_drop=0.1)
ERROR = Threshold(metric="MeanSquaredError", max_drop=0.1)


def gated(size, value, blessed=True, threshold=ACCURACY, latency=None):
    return GateReport(
        blessed=blessed,
        reasons=() if blessed else ("too bad",),
        config=GateConfig(label_key="y", thresholds=(threshold,)),
        metrics=(
            MetricComparison(metric=threshold.title, slice="Overall", examples=9, baseline=0.9, candidate=value, difference=value - 0.9),
            MetricComparison(metric=threshold.title, slice="y=1", examples=9, baseline=0.9, candidate=0.123, difference=0.0),
        ),
        size_bytes=10 * size,
        gzip_bytes=size,
        latency_ms=latency,
        runtime="2.3.0",
    )


def candidates(*reports):
    return [Candidate(f"model/{i}", f"EdgeValidator.{i}", report) for i, report in enumerate(reports)]


def chosen(*reports, config=SelectionConfig()):
    return select(candidates(*reports), config).chosen


def test_the_smallest_blessed_candidate_is_chosen_however_small_the_others_are():
    assert chosen(gated(5, 0.9), gated(3, 0.85), gated(1, 0.2, blessed=False)) == "model/1"


def test_of_equal_cost_the_better_metric_wins_whichever_way_the_metric_goes():
    assert chosen(gated(3, 0.85), gated(3, 0.9)) == "model/1"
    assert chosen(gated(3, 0.85, threshold=ERROR), gated(3, 0.9, threshold=ERROR)) == "model/0"


def test_none_is_chosen_where_none_is_blessed():
    report = select(candidates(gated(5, 0.9, blessed=False), gated(3, 0.9, blessed=False)), SelectionConfig())
    assert report.chosen is None and not any(c.on_front for c in report.candidates)


def test_the_front_holds_the_blessed_candidates_that_no_other_beats_in_both():
    reports = gated(1, 0.80), gated(2, 0.90), gated(3, 0.85), gated(4, 0.95), gated(2, 0.99, blessed=False)
    report = select(candidates(*reports), SelectionConfig())
    assert {c.model for c in report.candidates if c.on_front} == {"model/0", "model/1", "model/3"}
    assert [c.model for c in report.candidates] == ["model/0", "model/1", "model/2", "model/3", "model/4"]


def test_latency_decides_where_it_is_the_objective_and_must_have_been_measured():
    config = SelectionConfig(objective="latency_ms")
    assert chosen(gated(5, 0.9, latency=1.0), gated(3, 0.9, latency=2.0), config=config) == "model/0"
    with pytest.raises(EdgeError, match=r"EdgeValidator.1: latency_ms wasn't measured; .*max_latency_ratio"):
        chosen(gated(5, 0.9, latency=1.0), gated(3, 0.9), config=config)


def test_candidates_of_different_gates_are_not_compared():
    with pytest.raises(EdgeError, match="BinaryAccuracy, MeanSquaredError"):
        chosen(gated(5, 0.9), gated(3, 0.9, threshold=ERROR))


def artifacts(folder, reports):
    """Models with blessings and reports as EdgeValidator leaves them."""
    inputs, last = {}, len(reports) - 1
    for i, report in enumerate(reports):
        model, blessing, document = standard_artifacts.Model(), standard_artifacts.ModelBlessing(), EdgeReport()
        for artifact, name in ((model, "model"), (blessing, "blessing"), (document, "report")):
            artifact.uri = str(folder / name / str(i))
            Path(artifact.uri).mkdir(parents=True)
        (Path(model.uri) / "Format-Serving").mkdir()
        (Path(model.uri) / "Format-Serving" / "tflite").write_bytes(bytes([i]))
        write_blessing(blessing, report.blessed, model, None, f"EdgeValidator.{i}")
        document.set_string_custom_property("current_model", model.uri)
        (Path(document.uri) / "report.json").write_text(report.to_json())
        inputs[keys.nth(keys.MODEL, i)] = [model]
        inputs[keys.nth(keys.BLESSING, last - i)] = [blessing]  # wired in another order
        inputs[keys.nth(keys.REPORT, last - i)] = [document]
    return inputs


def run(folder, inputs):
    outputs = {keys.MODEL: standard_artifacts.Model(), keys.BLESSING: standard_artifacts.ModelBlessing(), keys.REPORT: EdgeReport()}
    for key, artifact in outputs.items():
        artifact.uri = str(folder / "output" / key)
        Path(artifact.uri).mkdir(parents=True)
    Executor().Do(inputs, {k: [v] for k, v in outputs.items()}, {keys.CONFIG: SelectionConfig().to_json()})
    return outputs


def test_the_chosen_model_is_copied_and_blessed(tmp_path):
    outputs = run(tmp_path, artifacts(tmp_path, [gated(5, 0.9), gated(3, 0.9), gated(1, 0.9, blessed=False)]))
    assert Path(outputs[keys.MODEL].uri, "Format-Serving", "tflite").read_bytes() == b"\x01"
    assert outputs[keys.BLESSING].get_int_custom_property("blessed") == 1
    assert [p.name for p in Path(outputs[keys.BLESSING].uri).iterdir()] == ["BLESSED"]
    report = SelectionReport.from_json(Path(outputs[keys.REPORT].uri, "selection.json").read_bytes())
    assert [c.validator for c in report.candidates] == ["EdgeValidator.1", "EdgeValidator.0", "EdgeValidator.2"]
    assert json.loads(report.to_json())["chosen"].endswith("model/1")


def test_where_none_is_blessed_the_output_is_not_blessed(tmp_path):
    outputs = run(tmp_path, artifacts(tmp_path, [gated(5, 0.9, blessed=False), gated(3, 0.9, blessed=False)]))
    assert outputs[keys.BLESSING].get_int_custom_property("blessed") == 0
    assert [p.name for p in Path(outputs[keys.BLESSING].uri).iterdir()] == ["NOT_BLESSED"]


def test_a_blessing_that_its_report_contradicts_or_that_is_missing_stops_the_choice(tmp_path):
    inputs = artifacts(tmp_path, [gated(5, 0.9), gated(3, 0.9, blessed=False)])
    inputs[keys.nth(keys.BLESSING, 0)][0].set_int_custom_property("blessed", 1)
    with pytest.raises(EdgeError, match="contradict each other"):
        run(tmp_path, inputs)
    inputs[keys.nth(keys.BLESSING, 0)].clear()
    with pytest.raises(EdgeError, match="model/1 has no blessing"):
        run(tmp_path / "again", inputs)


def test_every_model_needs_its_blessing_and_report_when_the_pipeline_is_built():
    with pytest.raises(EdgeError, match="ModelSelector: 1 models, 0 blessings, 0 reports"):
        ModelSelector(models=[object()], blessings=[], reports=[])
