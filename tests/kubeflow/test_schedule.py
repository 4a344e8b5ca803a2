"""`tfx-edge schedule` over HTTP against a server that holds state."""

import json
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner
from kfp_server import KfpServer

from tfx_edge.cli import cli
from tfx_edge.schemas import EdgeError

NIGHTLY = {"name": "nightly", "package": "digits.yaml", "cron": "0 2 * * *", "parameters": {"root": "minio://mlpipeline/digits"}}


@pytest.fixture
def server():
    with KfpServer() as started:
        yield started


@pytest.fixture
def folder(tmp_path):
    write_package(tmp_path)
    write(tmp_path, NIGHTLY)
    return tmp_path


def write_package(folder, image="edge@sha256:1", name="digits.yaml"):
    inputs = {"root": {"parameterType": "STRING"}, "steps": {"parameterType": "NUMBER_INTEGER", "defaultValue": 3}}
    spec = {"pipelineInfo": {"name": "digits"}, "schemaVersion": "2.1.0", "root": {"dag": {}, "inputDefinitions": {"parameters": inputs}}}
    (folder / name).write_text(yaml.safe_dump({**spec, "deploymentSpec": {"executors": {"exec-a": {"container": {"image": image}}}}}))


def write(folder, *schedules, **more):
    (folder / "schedules.yaml").write_text(yaml.safe_dump({"schedules": list(schedules), **more}))


def run(server, *arguments, **options):
    result = CliRunner().invoke(cli, ["schedule", *map(str, arguments), "--host", getattr(server, "host", server)], **options)
    if isinstance(result.exception, EdgeError):
        assert "\n" not in str(result.exception)
        raise result.exception
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.output


def apply(server, folder, *arguments, **options):
    return run(server, "apply", "--file", folder / "schedules.yaml", *arguments, **options)


def plan(server, folder, *arguments):
    told = json.loads(apply(server, folder, "--dry-run", "--json", *arguments))["plan"]
    return {step["name"]: step["action"] for step in told}


def test_apply_makes_an_active_recurring_run_of_the_uploaded_package(server, folder):
    apply(server, folder)
    (made,) = server.active
    assert made["trigger"] == {"cron_schedule": {"cron": "0 0 2 * * *"}}
    assert made["runtime_config"]["parameters"] == NIGHTLY["parameters"]
    assert made["no_catchup"] is True and made["max_concurrency"] == "1" and made["experiment_id"] == "default"
    version = made["pipeline_version_reference"]["pipeline_version_id"]
    assert server.files[version] == (folder / "digits.yaml").read_bytes()


def test_every_setting_reaches_the_server(server, folder):
    window = {"start": "2027-01-01T00:00:00Z", "end": "2028-01-01T00:00:00+01:00"}
    more = {"concurrency": 3, "catch_up": True, "window": window, "service_account": "trainer", "experiment": "night", "enabled": False}
    write(
        folder,
        {"name": "often", "package": "digits.yaml", "interval": "6h", "parameters": {"root": "x"}, "pipeline_root": "s3://b/k", **more},
    )
    apply(server, folder)
    (made,) = server.recurring.values()
    periodic = made["trigger"]["periodic_schedule"]
    assert periodic["interval_second"] == "21600" and periodic["start_time"].startswith("2027-01-01T00:00:00")
    assert (made["max_concurrency"], made["no_catchup"], made["service_account"], made["status"]) == ("3", False, "trainer", "DISABLED")
    assert server.experiments[made["experiment_id"]]["display_name"] == "night"
    assert made["runtime_config"]["pipeline_root"] == "s3://b/k"


def test_a_second_apply_writes_nothing(server, folder):
    write(folder, NIGHTLY, *({**NIGHTLY, "name": f"more-{i}"} for i in range(4)))
    apply(server, folder)
    server.log.clear()
    apply(server, folder, "--prune", "--version", "another-name")
    assert server.writes == [] and server.log


def test_a_dry_run_writes_nothing_and_shows_fire_times(server, folder):
    told = apply(server, folder, "--dry-run")
    assert server.writes == []
    assert "create" in told and told.count("02:00 UTC") == 3


def test_a_changed_package_makes_a_version_and_replaces(server, folder):
    apply(server, folder)
    (old,) = server.recurring
    write_package(folder, image="edge@sha256:2")
    assert plan(server, folder) == {"nightly": "replace"}
    apply(server, folder, "--version", "v2")
    (new,) = server.recurring
    assert new != old and [v["display_name"] for v in server.versions.values()][1] == "v2"
    assert server.recurring[new]["pipeline_version_reference"]["pipeline_version_id"] in list(server.versions)[1:]


def test_a_changed_declaration_replaces_without_a_new_version(server, folder):
    apply(server, folder)
    write(folder, {**NIGHTLY, "cron": "0 3 * * *"})
    apply(server, folder)
    (made,) = server.recurring.values()
    assert made["trigger"]["cron_schedule"]["cron"] == "0 0 3 * * *" and len(server.versions) == 1


@pytest.mark.parametrize("write_number", range(1, 6))
@pytest.mark.parametrize("carried_out", [False, True])
def test_a_failure_anywhere_leaves_a_schedule_running_and_the_next_apply_finishes(server, folder, write_number, carried_out):
    apply(server, folder)
    (old,) = server.recurring
    write_package(folder, image="edge@sha256:2")
    seen = []

    def fail(method, _):
        if method != "GET":
            seen.append(method)
        return (500, "application/json", b"{}") if method != "GET" and len(seen) == write_number else None

    (server.after if carried_out else server.failures).append(fail)
    if (write_number, carried_out) == (4, True):
        apply(server, folder)  # the pause was carried out and its answer alone was lost: the work goes on
    else:
        with pytest.raises(EdgeError, match="500"):
            apply(server, folder)
        assert old in server.recurring or (write_number, carried_out) == (5, True)
    assert len(seen) >= write_number
    (active,) = server.active
    assert (active["recurring_run_id"] == old) == (write_number < 5 and (write_number, carried_out) != (4, True))
    server.failures.clear(), server.after.clear()
    apply(server, folder)
    (left,) = server.recurring.values()
    assert left["status"] == "ENABLED"
    assert len(server.versions) == 2
    server.log.clear()
    apply(server, folder)
    assert server.writes == []


def test_an_unfinished_run_outlives_the_replacement(server, folder):
    apply(server, folder)
    (old,) = server.recurring
    running = server.fire(old)
    write(folder, {**NIGHTLY, "cron": "0 3 * * *"})
    assert running in apply(server, folder)
    assert server.killed == [] and [r["trigger"]["cron_schedule"]["cron"] for r in server.active] == ["0 0 3 * * *"]
    server.runs[running]["state"] = "SUCCEEDED"
    apply(server, folder)
    assert old not in server.recurring and len(server.recurring) == 1


def test_prune_removes_only_what_this_file_made(server, folder):
    write(folder, NIGHTLY, group="other")
    apply(server, folder)
    write(folder, {**NIGHTLY, "name": "gone"}, NIGHTLY, group="mine")
    apply(server, folder)
    foreign = {**next(iter(server.recurring.values())), "recurring_run_id": "foreign", "description": "by hand"}
    server.recurring["foreign"] = foreign
    write(folder, NIGHTLY, group="mine")
    assert plan(server, folder) == {"nightly": "unchanged", "gone": "leave"}
    apply(server, folder, "--prune")
    assert sorted(r["display_name"] for r in server.recurring.values()) == ["nightly"] * 3 and "foreign" in server.recurring


def test_a_version_name_that_is_taken_leaves_the_old_schedule_alone(server, folder):
    apply(server, folder, "--version", "v1")
    (old,) = server.recurring
    write_package(folder, image="edge@sha256:2")
    with pytest.raises(EdgeError, match="409.*--version.*Failed to create a pipeline version"):
        apply(server, folder, "--version", "v1")
    assert [run["recurring_run_id"] for run in server.active] == [old]


def test_fire_times_stay_in_the_window(server, folder):
    write(folder, {**NIGHTLY, "window": {"start": "2999-01-01T12:00:00Z", "end": "2999-01-03T12:00:00Z"}})
    told = json.loads(apply(server, folder, "--json"))["plan"][0]["next"]
    assert told == ["2999-01-02 02:00 UTC", "2999-01-03 02:00 UTC"] == json.loads(run(server, "list", "--json"))[0]["next"]


def test_list_refuses_an_unknown_time_zone(server):
    assert "IANA" in run(server, "list", "--timezone", "Mars/Base") and server.log == []


def test_needs_neither_tfx_nor_the_kfp_sdk(server, folder):
    code = "import sys\nfrom tfx_edge.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
    code += "assert not {'tfx', 'tensorflow', 'kfp', 'apache_beam'} & sys.modules.keys()"
    command = ["schedule", "apply", "--host", server.host, "--file", folder / "schedules.yaml"]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert len(server.active) == 1


def test_a_first_schedule_that_stays_paused_is_told_and_resumed_next_time(server, folder):
    server.failures.append(lambda _, path: (500, "application/json", b"{}") if path.endswith(":enable") else None)
    with pytest.raises(EdgeError, match="500"):
        apply(server, folder)
    server.failures.clear()
    assert not server.active and plan(server, folder) == {"nightly": "resume"}
    apply(server, folder)
    assert len(server.active) == len(server.recurring) == 1


def test_what_is_pruned_starts_nothing_more_while_its_last_run_ends(server, folder):
    apply(server, folder)
    running = server.fire(next(iter(server.recurring)))
    write(folder)
    assert running in apply(server, folder, "--prune")
    assert not server.active and server.killed == []


def test_pause_resume_run_delete_by_name(server, folder):
    apply(server, folder)
    run(server, "pause", "nightly")
    assert not server.active and plan(server, folder) == {"nightly": "resume"}
    run(server, "resume", "default/nightly")
    assert len(server.active) == 1
    told = run(server, "run", "nightly")
    ((run_id, started),) = server.runs.items()
    assert f"started run {run_id}; in the UI under #/runs/details/{run_id}\n" in told and server.host not in told  # the API has no UI
    assert started["runtime_config"]["parameters"] == NIGHTLY["parameters"]
    listed = json.loads(run(server, "list", "--json"))
    assert listed[0]["name"] == "nightly" and len(listed[0]["next"]) == 3
    running = server.fire(next(iter(server.recurring)))
    with pytest.raises(EdgeError, match=running):
        run(server, "delete", "nightly")
    run(server, "delete", "nightly", "--kill-runs")
    assert not server.recurring
    with pytest.raises(EdgeError, match="nightly: not on"):
        run(server, "pause", "nightly")


@pytest.mark.parametrize("variable", ["KFP_TOKEN", "KFP_COOKIE"])
def test_a_line_break_behind_a_credential_is_none_of_its_own(variable, monkeypatch):
    monkeypatch.setenv(variable, "good-7c1\n")
    with KfpServer(**{variable.removeprefix("KFP_").lower(): "good-7c1"}) as server:
        assert "no schedules" in run(server, "list")


@pytest.mark.parametrize("value", ["", " \n", "tok-\u00e4", "tok\n-3f9a", "\ufefftok-3f9a"])
def test_a_token_file_that_no_header_can_carry_is_refused_without_being_shown(server, tmp_path, value):
    (tmp_path / "token").write_text(value)
    with pytest.raises(EdgeError, match="--token-file.*give its value alone") as caught:
        run(server, "list", "--token-file", tmp_path / "token")
    assert "tok-" not in str(caught.value).replace("--token-file", "") and server.log == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"parameters": {"root": "x", "stesp": 1}}, "no input stesp; it has root, steps"),
        ({"parameters": {}}, "root is missing"),
        ({"parameters": {"root": "x", "steps": "3"}}, "steps: got '3'; the package's input is a NUMBER_INTEGER"),
        ({"parameters": {"root": "x", "steps": True}}, "NUMBER_INTEGER"),
        ({"parameters": {"root": "x", "note": {"password": "hunter2"}}}, "'password' looks like a secret.*secret_env"),
        ({"package": "gone.yaml"}, "gone.yaml: can't be read"),
        ({"package": "schedules.yaml"}, "isn't a pipeline package; .* without --manifest"),
        ({"cron": "0 0 2 * * *"}, "'0 2 \\* \\* \\*'"),
        ({"interval": "1h"}, "got both of cron and interval"),
        ({"concurrency": 11}, "nightly.*concurrency: got 11"),
        ({"window": {"start": "2027-01-01"}}, "start"),
    ],
)
def test_a_wrong_declaration_is_told_before_the_server_is_asked(server, folder, change, told):
    write(folder, {**NIGHTLY, **change})
    with pytest.raises(EdgeError, match=told) as caught:
        apply(server, folder)
    assert server.log == [] and "hunter2" not in str(caught.value)


def test_an_unquoted_star_is_explained(server, folder):
    (folder / "schedules.yaml").write_text("schedules:\n  - name: a\n    package: digits.yaml\n    cron: */5 * * * *\n")
    with pytest.raises(EdgeError, match="put quotes around"):
        apply(server, folder)


def test_the_example_file_is_valid():
    from pathlib import Path

    from tfx_edge.kubeflow.schedule.cron import six_fields
    from tfx_edge.kubeflow.schedule.declaration import read_schedules

    for schedule in read_schedules(Path(__file__).parents[2] / "kubeflow" / "schedules.yaml").schedules:
        assert schedule.cron is None or six_fields(schedule.cron)
