"""The same plain package in KFP's own local orchestrator: the same tasks run, with the same values."""

import os
import subprocess

import pytest
import yaml
from plain_packages import art, const, graph, importer, out, package, pipeline_input, runner, states, step

# KFP's local runner knows an artifact only where the executor output names it; its backend knows all that are declared.
SAYS = """
says=$(printf %s "$1" | sed 's/.*"outputFile": *"\\([^"]*[.]json\\)".*/\\1/')
printf '{"artifacts": {"data": {"artifacts": [{"name": "data", "uri": "%s", "type": {"schemaTitle": "system.Artifact"}}]}}}' \\
    {{$.outputs.artifacts['data'].uri}} > "$says"
"""


def steps():
    """Values and artifacts from task to task and into a graph. No condition: KFP's local runner takes every one as false."""
    n = {"pipelinechannel--make-n": ("NUMBER_INTEGER", out("make", "n"))}
    told = "echo $NAME {{$.inputs.parameters['pipelinechannel--make-n']}} >> $TRACE"
    inner = {"pipelinechannel--make-n": ("NUMBER_INTEGER", pipeline_input("pipelinechannel--make-n"))}
    return {
        "make": step(
            "echo make {{$.inputs.parameters['word']}} {{$.inputs.parameters['x']}} >> $TRACE\n"
            "mkdir -p $(dirname {{$.outputs.parameters['n'].output_file}})\n"  # KFP's launcher does; its local runner doesn't
            "printf 7 > {{$.outputs.parameters['n'].output_file}}; printf hello > {{$.outputs.artifacts['data'].path}}\n" + SAYS,
            inputs={"word": ("STRING", pipeline_input("word")), "x": ("NUMBER_DOUBLE", const(2.5))},
            writes={"n": "NUMBER_INTEGER"},
            makes=("data",),
        ),
        "use": step(
            "echo use $(cat {{$.inputs.artifacts['data'].path}}) {{$.inputs.parameters['n']}} >> $TRACE",
            inputs={"n": ("NUMBER_INTEGER", out("make", "n"))},
            artifacts={"data": art("make", "data")},
            dependentTasks=["make"],
        ),
        "known": importer("gs://bucket/known", metadata={"kind": "digits"}),
        "see": step(
            "echo see {{$.inputs.artifacts['x'].uri}} $(printf %s \"$1\" | grep -o digits) >> $TRACE",
            artifacts={"x": art("known", "artifact")},
            dependentTasks=["known"],
        ),
        "inside": graph({"told": step(told.replace("$NAME", "told"), inputs=inner)}, inputs=n, dependentTasks=["make"]),
    }


PARAMETERS = {"word": {"parameterType": "STRING"}}


@pytest.fixture
def traces(tmp_path, monkeypatch):
    """`traces(steps, parameters, given)`: what the steps wrote in KFP's orchestrator and here, and our record; both ended alike."""
    pytest.importorskip("kfp.local.pipeline_orchestrator", reason="this kfp has no local orchestrator; the current line's has")
    from kfp import components, local
    from kfp.local import status, subprocess_task_handler

    class ContainerAsProcess(subprocess_task_handler.SubprocessTaskHandler):
        """KFP's own refuses container components; the dispatcher looks the class up when it is called."""

        def __init__(self, image, full_command, pipeline_root, runner, *args, **kwargs):
            self.full_command = full_command

        def run(self):
            done = subprocess.run(self.full_command, env=dict(os.environ))
            return status.Status.SUCCESS if done.returncode == 0 else status.Status.FAILURE

    monkeypatch.setattr(subprocess_task_handler, "SubprocessTaskHandler", ContainerAsProcess)
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "kfp-root"), raise_on_error=True)

    def run_both(steps, parameters, given):
        monkeypatch.setenv("TRACE", str(tmp_path / "kfp"))
        component = components.load_component_from_text(yaml.safe_dump(package(steps, parameters=parameters)))
        try:
            component(**given)
            theirs = "SUCCEEDED"
        except RuntimeError:
            theirs = "FAILED"
        monkeypatch.setenv("TRACE", str(tmp_path / "ours"))
        record = runner(tmp_path)(steps, parameters=parameters, given=given)
        written = [sorted((tmp_path / side).read_text().splitlines()) for side in ("kfp", "ours")]
        assert theirs == record.state
        return *written, record

    return run_both


def test_the_trace_of_a_run_is_that_of_kfps_orchestrator(traces):
    theirs, ours, record = traces(steps(), PARAMETERS, {"word": "a b"})
    assert states(record) == dict.fromkeys(("make", "use", "known", "see", "inside/told"), "SUCCEEDED")
    assert ours == theirs and len(ours) == 4
    assert record.state == "SUCCEEDED"


def test_a_task_that_fails_stops_what_depends_on_it_as_in_kfps_orchestrator(traces):
    steps = {
        "first": step("echo first >> $TRACE"),
        "bad": step("echo bad >> $TRACE; exit 3", dependentTasks=["first"]),
        "behind": step("echo behind >> $TRACE", dependentTasks=["bad"]),
    }
    theirs, ours, record = traces(steps, None, {})
    assert ours == theirs == ["bad", "first"]
    assert record.state == "FAILED"
