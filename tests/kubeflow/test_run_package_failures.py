"""What goes wrong in a run, and what is left then."""

import contextlib
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from plain_packages import CACHED, art, log, runner, says, states, step, write

from tfx_edge.kubeflow.local_run.run import Options, run_package
from tfx_edge.schemas import EdgeError, PackageRun


@pytest.fixture
def run(tmp_path):
    return runner(tmp_path)


def test_a_task_that_fails_stops_what_depends_on_it_and_nothing_else(run):
    record = run(
        {
            "bad": step("echo broken >&2; exit 3"),
            "behind": step("true", dependentTasks=["bad"]),
            "further": step("true", dependentTasks=["behind"]),
            "other": step("true"),
            "after-other": step("true", dependentTasks=["other"]),
        }
    )
    assert record.state == "FAILED"
    assert states(record) == {
        "bad": "FAILED",
        "behind": "SKIPPED",
        "further": "SKIPPED",
        "other": "SUCCEEDED",
        "after-other": "SUCCEEDED",
    }
    assert record.tasks["bad"].exit_status == 3 and record.tasks["bad"].reason == "exit status 3"
    assert log(record, "bad") == "broken\n"


@pytest.mark.parametrize(
    ("script", "writes", "reason"),
    [
        ("true", {"n": "NUMBER_INTEGER"}, "output parameter n wasn't written"),
        (
            "echo x > {{$.outputs.parameters['n'].output_file}}",
            {"n": "NUMBER_INTEGER"},
            "output parameter n: got 'x\\n'; expected an integer",
        ),
    ],
)
def test_a_task_without_its_declared_output_fails_although_it_exits_with_0(run, script, writes, reason):
    record = run({"make": step(script, writes=writes)})
    assert record.state == "FAILED" and record.tasks["make"].reason == reason


@pytest.mark.parametrize("output", ['{"artifacts": {', "[]", "null", "3", '{"artifacts": 3}', '{"no-such-field": 1}', ""])
def test_an_executor_output_that_isnt_whole_or_no_executor_output_fails_the_task(run, output):
    record = run({"make": step(says(output), makes=("data",))})
    assert record.state == "FAILED" and record.tasks["make"].reason.startswith("the executor output isn't whole")
    assert "\n" not in record.tasks["make"].reason


def test_a_task_of_ours_without_an_executor_output_was_cut_off_although_it_exits_with_0(run):
    of_ours = {"command": ["sh", "-ec", "exit 0", "tfx_edge.kubeflow.entrypoint"], "makes": ("model",)}
    record = run({"train": step("", **of_ours), "push": step("true", artifacts={"model": art("train", "model")})})
    assert states(record) == {"train": "FAILED", "push": "SKIPPED"}
    assert record.tasks["train"].reason == "ended without writing its executor output"


@pytest.mark.parametrize(("script", "status", "reason"), [("kill -KILL $$", 137, "SIGKILL"), ("kill -SEGV $$", 139, "SIGSEGV")])
def test_a_task_that_a_signal_ends_fails_and_the_signal_is_named(run, script, status, reason):
    record = run({"bad": step(script), "behind": step("true", dependentTasks=["bad"])})
    assert states(record) == {"bad": "FAILED", "behind": "SKIPPED"}
    assert record.tasks["bad"].exit_status == status and record.tasks["bad"].reason == f"exit status {status} ({reason})"


def test_nothing_is_left_of_the_outputs_of_a_task_that_failed_but_its_log(run, tmp_path):
    half = "echo half > {{$.outputs.artifacts['data'].path}}; echo seen; "
    record = run(
        {
            "bad": step(half + "exit 1", makes=("data",)),
            "mute": step(half, makes=("data",), writes={"n": "STRING"}),
            "good": step(half, makes=("data",)),
        }
    )
    assert states(record) == {"bad": "FAILED", "mute": "FAILED", "good": "SUCCEEDED"}
    (kept,) = (tmp_path / "root" / "minio").rglob("data")
    assert str(kept) == record.tasks["good"].artifacts["data"][0].path
    assert log(record, "bad") == log(record, "mute") == "seen\n"
    assert record.tasks["bad"].artifacts == {}


def test_a_command_that_isnt_there_fails_its_task(run):
    record = run({"odd": step("", command=["no-such-program"])})
    assert record.tasks["odd"].reason == "no-such-program can't be started: No such file or directory"


def living(group):
    """Processes of a group; the dead whom nobody has asked for yet don't count."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, _, process_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(process_group) == group and state != "Z":
                found.append(stat.parent.name)
    return found


def started(tmp_path, script):
    """A process that runs a package of three tasks; the second, `script`, has written its process id."""
    package = write(
        tmp_path / "package.yaml",
        {
            "first": step("true"),
            "long": step(f"{script} echo $$ > $PID; sleep 600 & wait", env={"PID": str(tmp_path / "pid")}, dependentTasks=["first"]),
            "last": step("true", dependentTasks=["long"]),
        },
    )
    command = [sys.executable, "-c", "from tfx_edge.cli import main; main()", "run-package", str(package)]
    process = subprocess.Popen(
        [*command, "--root", str(tmp_path / "root"), "--engine", "host"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert process.poll() is None
        time.sleep(0.05)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_children_and_leaves_a_whole_record(tmp_path, number):
    process = started(tmp_path, "")
    process.send_signal(number)
    shown, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert living(int((tmp_path / "pid").read_text())) == []
    (path,) = (tmp_path / "root" / "runs").glob("*/run.json")
    record = PackageRun.from_json(path.read_text())
    assert record.state == "CANCELED" and shown.splitlines()[-1].startswith("CANCELED in ") and str(path) in shown
    assert states(record) == {"first": "SUCCEEDED", "long": "CANCELED", "last": "CANCELED"}


def test_a_second_signal_kills_a_task_that_ignores_the_first(tmp_path):
    process = started(tmp_path, "trap '' TERM;")
    group = int((tmp_path / "pid").read_text())
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)  # two signals at once would be one
    assert living(group) != []
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert living(group) == []
    (path,) = (tmp_path / "root" / "runs").glob("*/run.json")
    assert PackageRun.from_json(path.read_text()).state == "CANCELED"


def test_a_file_where_outputs_should_lie_fails_the_task(run, tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "minio").write_text("in the way")
    record = run({"make": step("true", makes=("data",))})
    assert record.state == "FAILED" and record.tasks["make"].reason.startswith("no place for outputs: ")


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda root: root.write_text(""), "--root .*: can't be written"),
        (lambda root: (root.mkdir(), (root / "runs").write_text("")), "--root .*runs.*give another folder, or remove what is in the way"),
        (lambda root: (root.mkdir(), (root / "metadata.sqlite").write_text("x" * 4096)), r"metadata\.sqlite: can't be used .*give another"),
    ],
)
def test_a_root_that_cant_be_used_is_refused_in_one_line(run, tmp_path, make, match):
    make(tmp_path / "root")
    with pytest.raises(EdgeError, match=match) as caught:
        run({"make": step("true")})
    assert "\n" not in str(caught.value)


def test_runs_at_once_below_one_root_keep_apart_and_share_the_store(tmp_path):
    script = "printf $N > {{$.outputs.artifacts['data'].path}}; sleep 0.05"
    steps = {f"make-{n}": step(script, makes=("data",), env={"N": str(n)}, **CACHED) for n in range(4)}
    package = write(tmp_path / "package.yaml", steps)
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(run_package, package, Options(tmp_path / "root", "host", use_cache=False)) for _ in range(3)]
    records = [future.result()[0] for future in futures]
    assert {record.state for record in records} == {"SUCCEEDED"}
    artifacts = [record.tasks[name].artifacts["data"][0] for record in records for name in steps]
    assert len({artifact.number for artifact in artifacts}) == len({artifact.path for artifact in artifacts}) == 12
    assert [Path(artifact.path).read_text() for artifact in artifacts] == ["0", "1", "2", "3"] * 3
