"""What can't be compiled is refused in one line that says why."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tfx_edge.kubeflow.compile.compiler import compile_pipeline
from tfx_edge.schemas import ComponentConfig, DataflowBeam, EdgeError, KubeflowConfig

IMAGE = "registry.example/edge@sha256:" + "0" * 64
VERTEX = KubeflowConfig(pipeline_root="gs://bucket/root")


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("resolved", "component 'Latest': a resolver"),
        ("conditional_on_a_value", "component 'Hear': KFP can't evaluate its condition"),
        ("colliding", "components 'Say.a' and 'say_a' are both 'say-a'"),
        ("imported_below", "component 'Model.Importer': its uri has input 'folder' in a longer text"),
        ("typed", "component 'Typed': artifact type 'kubeflow_packages.Own' has PROPERTIES .span."),
        ("short_typed", "pipeline 'small': TFX can't compile it: ValueError: Invalid custom artifact type name: Short"),
        ("empty", "empty gave a pipeline without components"),
        ("behind_nothing", "component 'later': runs after 'first', which isn't in the pipeline"),
        ("nested", "component 'inner': a pipeline within the pipeline"),
        ("twice", "twice failed: RuntimeError: Duplicated node_id Say"),
        ("no_pipeline", "no_pipeline gave int; expected a tfx Pipeline"),
        ("missing", "no function missing in module kubeflow_packages; its functions: .*colliding"),
    ],
)
def test_what_kfp_cannot_run_is_refused_with_its_name(function: str, text: str) -> None:
    with pytest.raises(EdgeError, match=text):
        compile_pipeline(f"kubeflow_packages:{function}", KubeflowConfig(), image=IMAGE)


@pytest.mark.parametrize(
    ("target", "config", "options", "text"),
    [
        ("nowhere.at.all:f", {}, {}, "module nowhere.at.all can't be imported"),
        ("kubeflow_packages", {}, {}, "expected MODULE:FUNCTION"),
        ("kubeflow_packages:says", {}, {"image": None}, "no image; give --image"),
        ("kubeflow_packages:says", {"require_digest": True}, {"image": "edge:latest"}, "image 'edge:latest' has no digest"),
        ("kubeflow_packages:says", {}, {"arguments": {"word": "x"}}, "argument 'word': says takes text, times, greeting"),
        ("kubeflow_packages:says", {}, {"arguments": {"times": "x"}}, "argument 'times': got 'x'; expected int"),
        ("kubeflow_packages:says", {"components": {"Sya": {}}}, {}, "components has 'Sya'; the pipeline's components are Say"),
    ],
)
def test_a_mistake_is_told_in_one_line(target: str, config: dict[str, Any], options: dict[str, Any], text: str) -> None:
    with pytest.raises(EdgeError, match=text) as error:
        compile_pipeline(target, KubeflowConfig(**config), **{"image": IMAGE, **options})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("target", ["kfp", "vertex"])
@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("named", "input 'name' shapes the pipeline itself.*--arg name="),
        ("identified", "input 'name' shapes the pipeline itself.*--arg name="),
        ("shouted", "input 'name' was changed as a text .'TFX_EDGE_INPUT_NAME__'.*--arg name="),
        ("cut", "input 'name' was changed as a text"),
        ("decided", "input 'flag' got nowhere into the pipeline: the function decided by it.*--arg flag="),
        ("counted", "input 'n' got nowhere into the pipeline"),
        ("unused", "input 'name' got nowhere into the pipeline"),
        ("numbered", "component 'Say': text has 'n', a number.*annotate it so, or give it a value by --arg n="),
        ("structured", "component 'Configure': config has 'rate', a number"),
    ],
)
def test_an_input_that_only_a_run_knows_cannot_shape_the_pipeline(function: str, text: str, target: Any) -> None:
    with pytest.raises(EdgeError, match=text):
        compile_pipeline(f"kubeflow_packages:{function}", VERTEX, image=IMAGE, target=target)


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        ("identified", "name=a"),
        ("shouted", "name=a"),
        ("decided", "flag=yes"),
        ("counted", "n=3"),
        ("numbered", "n=3"),
        ("structured", "rate=2"),
    ],
)
def test_with_the_value_that_the_refusal_asks_for_it_compiles(function: str, argument: str) -> None:
    name, _, value = argument.partition("=")
    text = compile_pipeline(f"kubeflow_packages:{function}", KubeflowConfig(), image=IMAGE, arguments={name: value})
    assert "inputDefinitions" not in yaml.safe_load(text)["root"]


def test_a_root_that_is_only_the_pipelines_root_gives_way_to_kfps_own() -> None:
    text = compile_pipeline("kubeflow_packages:rooted", KubeflowConfig(), image=IMAGE)
    assert "inputDefinitions" not in yaml.safe_load(text)["root"] and "artifacts" not in yaml.safe_load(text).get("defaultPipelineRoot", "")


def test_an_optional_number_is_an_input_of_that_type() -> None:
    package = yaml.safe_load(compile_pipeline("kubeflow_packages:optional", KubeflowConfig(), image=IMAGE))
    assert package["root"]["inputDefinitions"]["parameters"] == {"times": {"parameterType": "NUMBER_INTEGER"}}


@pytest.mark.parametrize("kind", ["RuntimeError", "AssertionError", "NameError", "SystemExit"])
def test_whatever_the_function_raises_is_told_in_one_line(kind: str) -> None:
    with pytest.raises(EdgeError, match=f"^fails failed: {kind}: one two$"):
        compile_pipeline("kubeflow_packages:fails", KubeflowConfig(), image=IMAGE, arguments={"kind": kind})


@pytest.mark.parametrize(("code", "text"), [("undefined", "NameError: name 'undefined' is"), ("def f(:", "SyntaxError: invalid syntax")])
def test_a_module_that_fails_is_told_in_one_line(code: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_failing_module.py").write_text(code + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EdgeError, match=f"module a_failing_module can't be imported .{text}"):
        compile_pipeline("a_failing_module:f", KubeflowConfig(), image=IMAGE)


@pytest.mark.parametrize("target", ["kfp", "vertex"])
@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        ("says", {"text": "ghp_" + "a" * 36}, "argument 'text' looks like a secret"),
        ("configured", {"config": '{"api_key": "hunter2"}'}, "argument 'api_key' looks like a secret"),
        ("with_literal_key", {}, "'text' looks like a secret.*secret_env"),
        ("with_literal_password", {}, "'password' looks like a secret.*secret_env"),
    ],
)
def test_a_secret_in_an_argument_or_a_property_is_refused_without_being_repeated(
    function: str, arguments: dict[str, str], text: str, target: Any
) -> None:
    with pytest.raises(EdgeError, match=text) as error:
        compile_pipeline(f"kubeflow_packages:{function}", VERTEX, image=IMAGE, arguments=arguments, target=target)
    assert not any(part in str(error.value) for part in ("ghp_", "hunter2", "AKIA"))


def test_dataflow_without_a_root_that_its_workers_see_is_refused() -> None:
    beam = DataflowBeam(project="p", region="r", temp_location="gs://b/t")
    for config in (KubeflowConfig(defaults=ComponentConfig(beam=beam)), KubeflowConfig(components={"Say": ComponentConfig(beam=beam)})):
        with pytest.raises(EdgeError, match="beam is dataflow and pipeline_root None; Dataflow needs one that starts with gs://"):
            compile_pipeline("kubeflow_packages:says", config, image=IMAGE)
