"""A run's report out of ML Metadata and artifacts."""

import json
import shutil
from pathlib import Path

import pytest
import run_reports
from metadata_runs import CACHED, FAILED, MetadataRuns

from tfx_edge.components.model_selector.selection import Candidate, select
from tfx_edge.pipelines.run_report import read_run
from tfx_edge.schemas import EdgeError, SelectionConfig


@pytest.fixture
def runs(tmp_path: Path) -> MetadataRuns:
    return MetadataRuns(tmp_path)


def test_the_latest_run_is_read_with_every_document_that_its_model_was_made_by(runs: MetadataRuns) -> None:
    runs.begin("first").judged(report=run_reports.gate_report(reasons=("too bad",)))
    gate = runs.begin("second").judged()
    run = read_run(runs.database)
    assert (run.pipeline, run.run_id, run.missing) == ("digits", "second", {})
    (model,) = run.models
    assert model.report == run_reports.gate_report() and model.decisions == run_reports.decisions()
    assert (model.manifest, model.plan, model.sparsity) == (run_reports.manifest(), run_reports.plan(), run_reports.sparsity())
    assert model.uri == runs.store.get_artifacts_by_id([gate["model"]])[0].uri and model.missing == {}
    assert [step.component for step in run.lineage] == ["Trainer", "Quantizer", "TFLiteExporter", "EdgeValidator"]
    assert {(a.key, a.id) for a in run.lineage[-1].inputs} >= {("model", gate["model"])}
    assert all(step.state == "COMPLETE" and step.seconds is not None for step in run.lineage)


def test_the_history_has_every_run_up_to_this_one_with_its_verdict(runs: MetadataRuns) -> None:
    gate = runs.begin("first").judged(report=run_reports.gate_report(reasons=("too bad",), gzip_bytes=90_000))
    runs.begin("broken").component("Trainer", {}, {}, FAILED)
    runs.begin("again").component(
        "EdgeValidator", {"model": gate["model"]}, {key: gate[key] for key in ("report", "evaluation", "blessing")}, CACHED
    )
    runs.begin("last").judged()
    runs.begin("later, still running").component("Trainer", {}, {})
    run = read_run(runs.database)
    assert [(p.run_id, p.state, p.gzip_bytes) for p in run.history] == [
        ("first", "not blessed", 90_000),
        ("broken", "no verdict", None),
        ("again", "not blessed", 90_000),
        ("last", "blessed", 83_138),
    ]
    assert run.history[2].note == "the model of an earlier run" and run.history[1].note == "no gate finished in it"
    assert (run.history[0].metric, run.history[0].baseline, run.history[0].candidate) == (run_reports.ACCURACY, 0.98, 0.98)
    assert [p.run_id for p in read_run(runs.database, run_id="first").history] == ["first"], "what came later isn't its past"


def test_a_past_run_whose_report_is_gone_keeps_its_blessings_verdict_and_says_so(runs: MetadataRuns) -> None:
    gate = runs.begin("first").judged()
    shutil.rmtree(runs.write(gate["report"]))
    runs.begin("second").judged()
    first, _ = read_run(runs.database).history
    assert (first.state, first.metric, first.note) == ("blessed", None, "its report.json is gone")
    with pytest.raises(EdgeError, match="run 'first': its report.json is gone from .*; run the gate again"):
        read_run(runs.database, run_id="first")


def test_of_several_variants_the_chosen_one_is_first_and_the_selection_is_told(runs: MetadataRuns) -> None:
    runs.begin("run")
    trained = runs.component("Trainer", {}, {"model": "Model"})["model"]
    reports = [run_reports.gate_report(gzip_bytes=size) for size in (90_000, 70_000)]
    gates = [runs.judged(f".{name}", report, trained) for name, report in zip(("int8", "pruned"), reports, strict=True)]
    uris = [artifact.uri for artifact in runs.store.get_artifacts_by_id([gate["model"] for gate in gates])]
    selection = select(
        [Candidate(uri, name, report) for uri, name, report in zip(uris, ("int8", "pruned"), reports, strict=True)], SelectionConfig()
    )
    chosen = runs.component("ModelSelector", {}, {"model": "Model", "report": "tfx_edge.EdgeReport"})
    runs.write(chosen["report"], selection=selection)
    run = read_run(runs.database)
    assert [model.name for model in run.models] == ["pruned", "int8"]
    assert run.selection == selection
    assert {past.validator for past in run.history} == {"EdgeValidator.int8", "EdgeValidator.pruned"}


def test_what_is_gone_is_left_out_with_a_reason(runs: MetadataRuns) -> None:
    gate = runs.begin("run").judged()
    (runs.write(gate["evaluation"]) / "decisions.json").unlink()
    (runs.write(gate["model"]) / "edge" / "manifest.json").unlink()
    plan = next(a.uri for step in read_run(runs.database).lineage for a in step.outputs if a.key == "quantization_plan")
    (Path(plan) / "plan.json").unlink()
    (model,) = read_run(runs.database).models
    assert (model.decisions, model.manifest, model.plan) == (None, None, None)
    assert set(model.missing) == {"decisions", "manifest", "plan"}


def test_a_document_that_cannot_be_read_is_an_error_that_names_it(runs: MetadataRuns) -> None:
    gate = runs.begin("run").judged()
    place = runs.write(gate["evaluation"]) / "decisions.json"
    place.write_text(json.dumps({"outputs": 1}))
    with pytest.raises(EdgeError, match=rf"{place}: PairedDecisions.outputs: got 1"):
        read_run(runs.database)


def test_pipelines_and_runs_that_are_not_there_are_named(runs: MetadataRuns) -> None:
    with pytest.raises(EdgeError, match="pipeline 'digits': no run in .*; run it first"):
        read_run(runs.database)
    runs.begin("run").component("Trainer", {}, {"model": "Model"})
    with pytest.raises(EdgeError, match="pipeline 'digits': no EdgeValidator finished in any run"):
        read_run(runs.database)
    runs.judged()
    with pytest.raises(EdgeError, match="run 'other': pipeline 'digits' has run; name one of its runs"):
        read_run(runs.database, run_id="other")
    with pytest.raises(EdgeError, match="pipeline 'taxi': it is not in .*, which has digits"):
        read_run(runs.database, "taxi")
    MetadataRuns(runs.folder, "taxi").begin("run of taxis").judged(".taxi")
    with pytest.raises(EdgeError, match="it has the pipelines digits, taxi; name one with --pipeline"):
        read_run(runs.database)
    assert read_run(runs.database, "taxi").pipeline == "taxi"
