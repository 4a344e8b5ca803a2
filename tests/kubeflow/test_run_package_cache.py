"""What a run takes from an earlier one below the same root."""

import json
import shutil

import pytest
from plain_packages import CACHED, art, const, importer, log, pipeline_input, runner, states, step


@pytest.fixture
def run(tmp_path):
    return runner(tmp_path)


def chain(text="hello", image="localhost/plain:1", count=1.0):
    return {
        "make": step(
            f"echo {text} > {{{{$.outputs.artifacts['data'].path}}}}",
            inputs={"n": ("NUMBER_INTEGER", const(count))},
            makes=("data",),
            image=image,
            **CACHED,
        ),
        "use": step("cat {{$.inputs.artifacts['data'].path}}", artifacts={"data": art("make", "data")}, **CACHED),
    }


def test_equal_tasks_are_taken_from_an_earlier_run_with_their_artifacts(run):
    first, second = run(chain()), run(chain())
    assert states(first) == {"make": "SUCCEEDED", "use": "SUCCEEDED"}
    assert states(second) == {"make": "CACHED", "use": "CACHED"}
    assert second.tasks["make"].artifacts == first.tasks["make"].artifacts


@pytest.mark.parametrize("change", [{"text": "other"}, {"image": "localhost/plain:2"}, {"count": 2.0}])
def test_another_command_image_or_value_runs_anew_and_so_does_what_takes_its_artifacts(run, change):
    run(chain())
    assert states(run(chain(**change))) == {"make": "SUCCEEDED", "use": "SUCCEEDED"}


def test_nothing_is_taken_without_the_option_or_against_the_caller(run):
    steps = chain()
    run(steps)
    assert states(run(steps, use_cache=False)) == {"make": "SUCCEEDED", "use": "SUCCEEDED"}
    del steps["make"]["task"]["cachingOptions"]
    assert states(run(steps))["make"] == "SUCCEEDED"


def test_a_failed_execution_is_never_taken(run, tmp_path):
    steps = {"once": step("[ -e $FLAG ]", env={"FLAG": str(tmp_path / "flag")}, **CACHED)}
    assert states(run(steps)) == {"once": "FAILED"}
    (tmp_path / "flag").touch()
    assert states(run(steps)) == {"once": "SUCCEEDED"}


def test_outputs_that_were_removed_are_made_again(run, tmp_path):
    run(chain())
    shutil.rmtree(tmp_path / "root" / "minio")
    assert states(run(chain())) == {"make": "SUCCEEDED", "use": "SUCCEEDED"}


def imported(**options):
    return {
        "data": importer("s3://records/digits", metadata={"span": 4, "split_names": '["train"]'}, **options),
        "use": step('printf %s "$1"', artifacts={"examples": art("data", "artifact")}, **CACHED),
    }


def test_an_import_is_the_same_artifact_in_the_next_run_unless_it_is_to_be_new(run, tmp_path):
    first = run(imported())
    message = json.loads(log(first, "use"))["inputs"]["artifacts"]["examples"]["artifacts"][0]
    assert message["uri"] == "s3://records/digits" and message["metadata"]["span"] == 4
    assert first.tasks["data"].artifacts["artifact"][0].path == str(tmp_path / "root" / "s3" / "records" / "digits")
    assert states(run(imported())) == {"data": "SUCCEEDED", "use": "CACHED"}
    assert states(run(imported(reimport=True))) == {"data": "SUCCEEDED", "use": "SUCCEEDED"}


def test_an_importers_address_can_be_an_input_of_the_pipeline(run):
    record = run(
        {"data": importer(pipeline_input("where"))}, parameters={"where": {"parameterType": "STRING"}}, given={"where": "gs://b/x"}
    )
    assert record.tasks["data"].artifacts["artifact"][0].uri == "gs://b/x"
