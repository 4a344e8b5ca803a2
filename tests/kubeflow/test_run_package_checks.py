"""What is refused before anything runs, in one line each; and the command."""

import pytest
import yaml
from click.testing import CliRunner
from plain_packages import EXIT, art, const, graph, importer, package, pipeline_input, step, write

from tfx_edge.cli import cli
from tfx_edge.kubeflow.local_run.package_file import read_package
from tfx_edge.kubeflow.local_run.run import Options, run_package
from tfx_edge.schemas import EdgeError

PARAMETERS = {
    "n": {"parameterType": "NUMBER_INTEGER"},
    "m": {"parameterType": "STRING"},
    "x": {"parameterType": "NUMBER_DOUBLE", "defaultValue": 0.5},
    "on": {"parameterType": "BOOLEAN", "defaultValue": True},
    "names": {"parameterType": "LIST", "defaultValue": []},
    "note": {"parameterType": "STRING", "isOptional": True},
}
GIVEN = {"n": "4", "m": "word"}


def refused(tmp_path, steps, given=None, *, match, parameters=None, **options):
    package_path = write(tmp_path / "package.yaml", steps, parameters=parameters)
    with pytest.raises(EdgeError, match=match) as caught:
        run_package(package_path, Options(tmp_path / "root", "host", given or {}, **options))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "root" / "runs").exists()


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, r"inputs without a default have no value; give --param m=\.\.\. --param n=\.\.\."),
        ({"m": "x"}, r"inputs without a default have no value; give --param n=\.\.\."),
        ({**GIVEN, "k": "2"}, "--param k: the package has no such input; it has m, n, names, note, on, x"),
        ({**GIVEN, "n": "1.5"}, "--param n: got '1.5'; expected an integer"),
        ({**GIVEN, "x": "half"}, "--param x: got 'half'; expected a number"),
        ({**GIVEN, "x": "nan"}, "--param x: got 'nan'; expected a number"),
        ({**GIVEN, "on": "yes"}, "--param on: got 'yes'; expected true or false"),
        ({**GIVEN, "names": "a,b"}, "--param names: got 'a,b'; expected a JSON list"),
        ({**GIVEN, "names": "{}"}, "--param names: got '?{}'?; expected a JSON list"),
    ],
)
def test_parameters_are_checked(tmp_path, given, match):
    refused(tmp_path, {"a": step("true")}, given, match=match, parameters=PARAMETERS)


def test_defaults_fill_in_and_an_optional_input_may_stay_away(tmp_path):
    shown = step("echo {{$.inputs.parameters['x']}}", inputs={"x": ("NUMBER_DOUBLE", pipeline_input("x"))})
    record, _ = run_package(
        write(tmp_path / "package.yaml", {"a": shown}, parameters=PARAMETERS), Options(tmp_path / "root", "host", GIVEN)
    )
    assert record.parameters == {"n": 4, "m": "word", "x": 0.5, "on": True, "names": []}


LOOP = {"parameterIterator": {"itemInput": "i", "items": {"raw": "[1]"}}}


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        ({"a": step("true", **LOOP)}, "task a: loops"),
        ({"a": step("true", dependentTasks=["b"])}, "task a: waits for b, which its graph doesn't have"),
        ({"a": step("true", dependentTasks=["b"]), "b": step("true", dependentTasks=["a"])}, "tasks wait for each other"),
        ({"a": step("true", triggerPolicy={"strategy": EXIT})}, "task a: an exit handler that waits for no task never runs"),
        ({"a": {**step("true"), "executor": {"resolver": {}}}}, "task a: (resolvers|executors of this kind) don't run on KFP"),
        ({"a": step("true", triggerPolicy={"condition": "size('x') == 1"})}, "task a: condition .*can't read 'size'"),
        (
            {"a": step("true", triggerPolicy={"condition": "inputs.parameter_values['n'] == 1"})},
            "task a: its condition .* reads parameter n, which isn't an input of the task",
        ),
        (
            {"a": {**importer("s3://b/x"), "task": {"triggerPolicy": {"condition": "true"}}}},
            "task a: KFP takes no condition on an importer",
        ),
        ({"a": {**importer("s3://b/x"), "component": step("")["component"]}}, "task a: an importer puts out one artifact; it declares 0"),
        (
            {
                "a": graph(
                    {"in": step("true")},
                    outputs={"artifacts": {"x": {"artifactSelectors": [{"producerSubtask": "no", "outputArtifactKey": "x"}]}}},
                )
            },
            "task a: puts out what no makes, which its graph doesn't have",
        ),
        ({"a": importer(const("s3://b/x"))}, "task a: an importer's uri is a constant or an input of the pipeline"),
        ({"a": step("", command=[])["task"] and {**step("x"), "executor": {"container": {"image": "i"}}}}, "task a: no command"),
    ],
)
def test_what_cant_run_is_refused_with_its_task(tmp_path, steps, match):
    refused(tmp_path, steps, match=match)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a: [", "isn't YAML \\(line 1: .*\\); give a package that tfx-edge compile wrote"),
        ("- 1\n", "no pipeline in it"),
        ("A plain text.\n", "no pipeline in it; give a package that tfx-edge compile wrote"),
        ("", "no pipeline in it"),
        ("pipelineSpec: {}\n", "a PipelineJob, as Vertex AI takes it; compile with --target kfp"),
        ("kind: Pipeline\n---\nkind: PipelineVersion\n", r"a manifest for Kubernetes \(Pipeline\); compile without --manifest"),
        ("kind: PipelineVersion\n", "a manifest for Kubernetes"),
        ("pipelineInfo: {name: x}\nroot: 3\n", "not a package of schema 2.1.0"),
        ("pipelineInfo: {name: x}\nroot: {}\nschemaVersion: 2.0.0\n", "schema version 2.0.0; KFP takes 2.1.0 alone"),
    ],
)
def test_a_file_that_is_no_package_is_refused(tmp_path, text, match):
    (tmp_path / "package.yaml").write_text(text)
    with pytest.raises(EdgeError, match=match):
        run_package(tmp_path / "package.yaml", Options(tmp_path / "root", "host"))


def test_a_file_that_isnt_there_is_refused(tmp_path):
    with pytest.raises(EdgeError, match=r"package\.yaml: can't be read \(No such file or directory\)"):
        run_package(tmp_path / "package.yaml", Options(tmp_path / "root", "host"))


def test_a_package_cut_off_anywhere_is_refused_in_one_line(tmp_path):
    path = write(
        tmp_path / "package.yaml", {"make": step("true", makes=("data",)), "use": step("true", artifacts={"d": art("make", "data")})}
    )
    whole = path.read_text()
    for length in range(0, whole.index("schemaVersion: 2.1.0") + len("schemaVersion: 2.1"), 7):
        path.write_text(whole[:length])
        with pytest.raises(EdgeError, match=r"package\.yaml: ") as caught:
            read_package(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("document", ["platforms: 3", "platforms: {kubernetes: []}", "{platforms: {kubernetes: {deploymentSpec: x}}}"])
def test_a_second_document_of_another_form_is_refused(tmp_path, document):
    path = write(tmp_path / "package.yaml", {"make": step("true")})
    path.write_text(f"{path.read_text()}---\n{document}\n")
    with pytest.raises(EdgeError, match="not a package of schema 2.1.0"):
        read_package(path)


def test_options_of_containers_are_refused_on_the_host(tmp_path):
    refused(tmp_path, {"a": step("true")}, match="--user and --volume are for containers", user="1000")


def test_a_volume_claim_is_warned_about_on_the_host(tmp_path):
    mount = {"a": {"pvcMount": [{"constant": "models", "mountPath": "/models"}]}}
    heard = []
    run_package(
        write(tmp_path / "package.yaml", {"a": step("true")}, platform=mount), Options(tmp_path / "root", "host"), warn=heard.append
    )
    assert heard == ["task a: engine host doesn't mount volume claim models at /models; the task sees this machine's own"]


@pytest.mark.parametrize(("script", "status"), [("true", 0), ("echo seen; echo error: no data; echo; exit 4", 1)])
def test_the_command_shows_a_line_a_task_and_of_one_that_failed_its_log_and_last_words(tmp_path, script, status):
    path = write(tmp_path / "package.yaml", {"make": step(script)})
    result = CliRunner().invoke(cli, ["run-package", str(path), "--root", str(tmp_path / "root"), "--engine", "host"])
    assert result.exit_code == status
    lines = result.output.splitlines()
    assert lines[0].split()[:2] == ["make", "FAILED" if status else "SUCCEEDED"]
    if status:
        assert "exit status 4" in lines[0] and lines[1].endswith("logs/make.log") and lines[2] == "    error: no data"
    assert "run.json" in lines[-1]


@pytest.mark.parametrize(("given", "match"), [(["n"], "'n': expected NAME=VALUE"), (["n=1", "n=2"], "'n' is given twice")])
def test_a_parameter_of_another_form_is_refused(given, match):
    options = [word for value in given for word in ("--param", value)]
    result = CliRunner().invoke(cli, ["run-package", "package.yaml", "--root", "x", *options])
    assert result.exit_code == 2 and match in result.output


def test_the_plain_packages_are_kfps():
    kfp_components = pytest.importorskip("kfp.components")
    spec = package({"make": step("true", makes=("data",)), "use": step("true", artifacts={"d": art("make", "data")})})
    loaded = kfp_components.load_component_from_text(yaml.safe_dump(spec))
    assert set(loaded.pipeline_spec.root.dag.tasks) == {"make", "use"}
