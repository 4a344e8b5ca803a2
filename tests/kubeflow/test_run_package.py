"""Runs of plain packages as processes: what KFP's driver, launcher and graphs do, one a test."""

import json
import sys

import pytest
from plain_packages import EXIT, art, const, graph, log, out, pipeline_input, runner, says, states, step

from tfx_edge.schemas import EdgeError


@pytest.fixture
def run(tmp_path):
    return runner(tmp_path)


def test_parameters_and_artifacts_reach_the_next_task(run):
    record = run(
        {
            "make": step(
                "printf 7 > {{$.outputs.parameters['n'].output_file}}; printf hello > {{$.outputs.artifacts['data'].path}}",
                writes={"n": "NUMBER_INTEGER"},
                makes=("data",),
            ),
            "use": step(
                "echo {{$.inputs.parameters['n']}} $(cat {{$.inputs.artifacts['data'].path}}) {{$.inputs.artifacts['data'].uri}}",
                inputs={"n": ("NUMBER_INTEGER", out("make", "n"))},
                artifacts={"data": art("make", "data")},
            ),
        }
    )
    (data,) = record.tasks["make"].artifacts["data"]
    assert record.state == "SUCCEEDED" and record.tasks["make"].parameters == {"n": 7}
    assert log(record, "use") == f"7 hello {data.uri}\n"
    assert data.uri.startswith(f"minio://mlpipeline/v2/artifacts/plain/{record.run_id}/make/") and data.uri.endswith("/data")


def test_an_executor_input_has_kfps_form(run):
    made = says('{"artifacts": {"data": {"artifacts": [{"metadata": {"count": 3, "good": true, "tags": ["a"], "of": {"x": 1}}}]}}}')
    record = run(
        {
            "make": step(made, makes=("data",)),
            "use": step(
                'printf %s "$1"',
                inputs={"n": ("NUMBER_INTEGER", const(3.0)), "s": ("STRING", const({"a": [1.5]}))},
                artifacts={"data": art("make", "data")},
                makes=("model",),
            ),
        }
    )
    message = json.loads(log(record, "use"))
    assert message["inputs"]["parameterValues"] == {"n": 3, "s": '{"a":[1.5]}'}
    (data,) = message["inputs"]["artifacts"]["data"]["artifacts"]
    assert data["name"] == str(record.tasks["make"].artifacts["data"][0].number)
    assert data["type"] == {"instanceSchema": ""}
    held = {key: data["metadata"][key] for key in ("count", "good", "tags", "of", "display_name")}
    assert held == {"count": 3, "good": 1, "tags": {"list": ["a"]}, "of": {"struct": {"x": 1}}, "display_name": "data"}
    assert set(message["outputs"]["artifacts"]) == {"model", "executor-logs"}
    assert message["outputs"]["artifacts"]["executor-logs"]["artifacts"][0]["type"] == {"schemaTitle": "system.Artifact"}


def test_the_backends_placeholder_inside_a_value_is_filled_where_the_value_is_used(run):
    channel = {"pipelinechannel--root": ("STRING", pipeline_input("root"))}
    place = ("STRING", const("{{$.inputs.parameters['pipelinechannel--root']}}/pushed"))
    record = run(
        {"push": step("echo {{$.inputs.parameters['to']}}", inputs={"to": place, **channel})},
        parameters={"root": {"parameterType": "STRING"}},
        given={"root": "/models"},
    )
    assert log(record, "push") == "/models/pushed\n"


@pytest.mark.parametrize(("written", "runs"), [("1", "SUCCEEDED"), ("0", "SKIPPED")])
def test_a_condition_decides_on_a_custom_property_as_tfx_writes_it(run, written, runs):
    bless = says(f'{{"artifacts": {{"blessing": {{"artifacts": [{{"metadata": {{"blessed": {written}}}}}]}}}}}}')
    condition = "(inputs.artifacts['_Gate.blessing'].artifacts[0].metadata['blessed'] == 1.0)"
    record = run(
        {
            "gate": step(bless, makes=("blessing",)),
            "push": step("true", artifacts={"_Gate.blessing": art("gate", "blessing")}, triggerPolicy={"condition": condition}),
            "behind": step("true", dependentTasks=["push"]),
        }
    )
    assert states(record) == {"gate": "SUCCEEDED", "push": runs, "behind": runs}
    assert record.state == "SUCCEEDED"


def test_a_condition_that_reads_a_missing_property_fails_the_task(run):
    record = run(
        {
            "gate": step("true", makes=("blessing",)),
            "push": step(
                "true",
                artifacts={"b": art("gate", "blessing")},
                triggerPolicy={"condition": "inputs.artifacts['b'].artifacts[0].metadata['blessed'] == 1.0"},
            ),
        }
    )
    assert states(record)["push"] == "FAILED" and "no such key: 'blessed'" in record.tasks["push"].reason


@pytest.mark.parametrize(("script", "state"), [("true", "SUCCEEDED"), ("exit 1", "FAILED")])
def test_an_exit_handler_runs_however_the_graph_ended_and_is_told(run, script, state):
    record = run(
        {
            "tfx-dag": graph({"work": step(script)}),
            "notify": step(
                "echo {{$.inputs.parameters['status']}}",
                inputs={"status": ("STRUCT", {"taskFinalStatus": {"producerTask": "tfx-dag"}})},
                dependentTasks=["tfx-dag"],
                triggerPolicy={"strategy": EXIT},
            ),
        }
    )
    assert states(record) == {"tfx-dag/work": state, "notify": "SUCCEEDED"}
    assert record.state == state
    status = log(record, "notify")
    assert f"state:{state}" in status.replace('"', "") and "pipelineTaskName:tfx-dag" in status.replace('"', "")


def test_a_graph_whose_condition_doesnt_hold_skips_all_in_it(run):
    inputs = {"pipelinechannel--n": ("NUMBER_INTEGER", const(3.0))}
    condition = {"condition": "int(inputs.parameter_values['pipelinechannel--n']) > 5"}
    record = run({"condition-1": graph({"a": step("true"), "b": step("true")}, inputs=inputs, triggerPolicy=condition), "c": step("true")})
    assert states(record) == {"condition-1/a": "SKIPPED", "condition-1/b": "SKIPPED", "c": "SUCCEEDED"}


def test_a_graph_inside_a_graph_takes_and_gives_parameters(run):
    inner = step(
        "printf {{$.inputs.parameters['word']}}{{$.inputs.parameters['word']}} > {{$.outputs.parameters['twice'].output_file}}",
        inputs={"word": ("STRING", pipeline_input("given"))},
        writes={"twice": "STRING"},
    )
    selected = {"parameters": {"result": {"valueFromParameter": {"producerSubtask": "inner", "outputParameterKey": "twice"}}}}
    record = run(
        {
            "outer": graph({"inner": inner}, inputs={"given": ("STRING", const("ab"))}, outputs=selected, writes={"result": "STRING"}),
            "use": step("echo {{$.inputs.parameters['x']}}", inputs={"x": ("STRING", out("outer", "result"))}),
        }
    )
    assert log(record, "use") == "abab\n"


def test_a_graph_takes_and_gives_artifacts_which_inside_have_no_type(run):
    inner = step(
        "cat {{$.inputs.artifacts['from'].path}} > {{$.outputs.artifacts['copy'].path}}; printf %s \"$1\"",
        artifacts={"from": {"componentInputArtifact": "given"}},
        makes=("copy",),
    )
    selected = {"artifacts": {"result": {"artifactSelectors": [{"producerSubtask": "inner", "outputArtifactKey": "copy"}]}}}
    record = run(
        {
            "make": step("echo hello > {{$.outputs.artifacts['data'].path}}", makes=("data",)),
            "outer": graph({"inner": inner}, artifacts={"given": art("make", "data")}, outputs=selected, makes=("result",)),
            "use": step("cat {{$.inputs.artifacts['x'].path}}", artifacts={"x": art("outer", "result")}),
        }
    )
    assert log(record, "use") == "hello\n"
    (given,) = json.loads(log(record, "outer/inner"))["inputs"]["artifacts"]["from"]["artifacts"]
    assert "type" not in given and given["uri"] == record.tasks["make"].artifacts["data"][0].uri


@pytest.mark.parametrize(("flip", "word"), [("heads", "if"), ("tails", "else")])
def test_a_graph_gives_the_parameter_of_the_branch_that_ran(run, flip, word):
    def branch(name, sign):
        said = step(f"printf {name} > {{{{$.outputs.parameters['word'].output_file}}}}", writes={"word": "STRING"})
        inner = {"parameters": {"word": {"valueFromParameter": {"producerSubtask": f"say-{name}", "outputParameterKey": "word"}}}}
        condition = {"condition": f"inputs.parameter_values['flip'] {sign} 'heads'"}
        taken = {"flip": ("STRING", pipeline_input("flip"))}
        return graph({f"say-{name}": said}, inputs=taken, outputs=inner, writes={"word": "STRING"}, triggerPolicy=condition)

    branches = {"on-if": branch("if", "=="), "on-else": branch("else", "!=")}
    selectors = [{"producerSubtask": name, "outputParameterKey": "word"} for name in branches]
    outputs = {"parameters": {"word": {"valueFromOneof": {"parameterSelectors": selectors}}}}
    record = run(
        {
            "branches": graph(branches, inputs={"flip": ("STRING", const(flip))}, outputs=outputs, writes={"word": "STRING"}),
            "use": step("echo {{$.inputs.parameters['x']}}", inputs={"x": ("STRING", out("branches", "word"))}),
        }
    )
    assert record.state == "SUCCEEDED" and log(record, "use") == f"{word}\n"


def test_the_runs_own_words_are_filled_where_an_input_is_one(run):
    words = {"id": "pipeline_job_uuid", "created": "pipeline_job_create_time_utc", "task": "pipeline_task_name"}
    inputs = {name: ("STRING", const(f"{{{{$.{word}}}}}")) for name, word in words.items()}
    record = run({"tell": step("echo " + " ".join(f"{{{{$.inputs.parameters['{name}']}}}}" for name in words), inputs=inputs)})
    assert log(record, "tell") == f"{record.run_id} {record.started} tell\n"


@pytest.mark.parametrize(("jobs", "looks", "state"), [(2, 400, "SUCCEEDED"), (1, 4, "FAILED")])
def test_tasks_run_at_once_as_far_as_jobs_allow(run, tmp_path, jobs, looks, state):
    meet = "touch $DIR/{me}; for i in $(seq $LOOKS); do [ -e $DIR/{other} ] && exit 0; sleep 0.05; done; rm $DIR/{me}; exit 1"
    env = {"DIR": str(tmp_path), "LOOKS": str(looks)}
    record = run({name: step(meet.format(me=name, other=other), env=env) for name, other in (("a", "b"), ("b", "a"))}, jobs=jobs)
    assert record.state == state


def test_python_is_this_interpreter_and_the_mount_root_is_told(run, tmp_path):
    code = "import os, sys; print(sys.executable, os.environ['TFX_EDGE_MOUNT_ROOT'])"
    record = run({"python": step("", command=["python", "-c", code])})
    assert log(record, "python") == f"{sys.executable} {tmp_path / 'root'}\n"


def test_secrets_come_from_the_callers_environment(run, monkeypatch):
    platform = {"push": {"secretAsEnv": [{"secretName": "store", "keyToEnv": [{"secretKey": "token", "envVar": "STORE_TOKEN"}]}]}}
    steps = {"push": step("echo $STORE_TOKEN")}
    monkeypatch.delenv("STORE_TOKEN", raising=False)
    with pytest.raises(EdgeError, match="task push: STORE_TOKEN comes from store on a cluster; set STORE_TOKEN in this environment"):
        run(steps, platform=platform)
    monkeypatch.setenv("STORE_TOKEN", "abc")
    record = run(steps, platform=platform)
    assert log(record, "push") == "abc\n" and "abc" not in record.to_json()
