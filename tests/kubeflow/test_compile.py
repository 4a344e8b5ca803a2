"""From a TFX pipeline to a package, held against KFP's own messages and loader."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from tfx_edge.kubeflow import package
from tfx_edge.kubeflow.compile.compiler import compile_pipeline
from tfx_edge.schemas import (
    Accelerator,
    ComponentConfig,
    DirectBeam,
    EdgeError,
    KubeflowConfig,
    Parameter,
    PortableBeam,
    Resources,
    Retry,
    SecretEnv,
    SecretVolume,
    Toleration,
    Volume,
)

DIGITS, IMAGE = "tfx_edge.pipelines.digits:create_pipeline", "registry.example/edge@sha256:" + "0" * 64


def compiled(function: str, config: KubeflowConfig = KubeflowConfig(), **options: Any) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(compile_pipeline(f"kubeflow_packages:{function}", config, image=IMAGE, **options)))


def spec(function: str, config: KubeflowConfig = KubeflowConfig(), **options: Any) -> dict[str, Any]:
    found = compiled(function, config, **options)[0]
    json_format.ParseDict(found, pipeline_spec_pb2.PipelineSpec())
    return found


def container(package: dict[str, Any], name: str) -> dict[str, Any]:
    return package["deploymentSpec"]["executors"][f"exec-{name}"]["container"]


def inputs(package: dict[str, Any]) -> dict[str, Any]:
    return package["root"].get("inputDefinitions", {}).get("parameters", {})


@pytest.fixture(scope="module")
def digits_text() -> str:
    return compile_pipeline(DIGITS, KubeflowConfig(), image=IMAGE)


@pytest.fixture(scope="module")
def digits(digits_text: str) -> dict[str, Any]:
    return yaml.safe_load(digits_text)


def test_the_package_is_a_pipeline_spec_that_kfp_loads(digits_text: str, digits: dict[str, Any], tmp_path: Path) -> None:
    json_format.ParseDict(digits, pipeline_spec_pb2.PipelineSpec())
    assert digits["schemaVersion"] == "2.1.0"
    file = tmp_path / "package.yaml"
    file.write_text(digits_text)
    from kfp import components

    assert set(components.load_component_from_file(str(file)).component_spec.inputs) == {"root", "data"}


def test_arguments_without_a_default_are_inputs_wherever_they_ended_up(digits: dict[str, Any]) -> None:
    assert inputs(digits) == {"root": {"parameterType": "STRING"}, "data": {"parameterType": "STRING"}}
    tasks = digits["root"]["dag"]["tasks"]
    assert tasks["importexamplegen"]["inputs"]["parameters"]["input_base"] == {"componentInputParameter": "data"}
    parameters = tasks["pusher"]["inputs"]["parameters"]
    [text] = [json.loads(parameters["push_destination"]["runtimeValue"]["constant"])["filesystem"]["base_directory"]]
    assert text == "{{tfx_edge.inputs['root']}}/pushed"
    assert parameters["pipelinechannel--root"] == {"componentInputParameter": "root"}
    assert digits["components"]["comp-pusher"]["inputDefinitions"]["parameters"]["pipelinechannel--root"] == {"parameterType": "STRING"}
    assert "tfx_edge_input" not in json.dumps(digits)


@pytest.mark.parametrize("name", ["images", "imported", "penguins", "sensor", "taxi", "text"])
def test_the_other_example_pipelines_compile_too_and_leave_nothing_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    package = yaml.safe_load(compile_pipeline(f"tfx_edge.pipelines.{name}:create_pipeline", KubeflowConfig(), image=IMAGE))
    json_format.ParseDict(package, pipeline_spec_pb2.PipelineSpec())
    assert {"root", "data"} <= set(inputs(package)) and not list(tmp_path.iterdir())


def test_every_name_that_is_referred_to_is_there_and_one_that_argo_takes(digits: dict[str, Any]) -> None:
    tasks, components = digits["root"]["dag"]["tasks"], digits["components"]
    assert len(tasks) == 12
    for name, task in tasks.items():
        assert name == task["taskInfo"]["name"] and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        component = components[task["componentRef"]["name"]]
        assert component["executorLabel"] in digits["deploymentSpec"]["executors"]
        assert set(task.get("dependentTasks", [])) <= set(tasks)
        for key, source in task.get("inputs", {}).get("artifacts", {}).items():
            made = components[tasks[source["taskOutputArtifact"]["producerTask"]]["componentRef"]["name"]]["outputDefinitions"]["artifacts"]
            wanted = component["inputDefinitions"]["artifacts"][key]["artifactType"]
            assert made[source["taskOutputArtifact"]["outputArtifactKey"]]["artifactType"] == wanted
            assert set(wanted) == {"schemaTitle", "schemaVersion"}


def test_containers_call_the_entry_point_with_types_driver_and_tfxs_own_arguments(digits: dict[str, Any]) -> None:
    made = container(digits, "importexamplegen")
    assert made["command"] == ["python", "-m", "tfx_edge.kubeflow.entrypoint"] and made["image"] == IMAGE and "lifecycle" not in made
    options = dict(zip(made["args"][::2], made["args"][1::2], strict=False))
    assert json.loads(options["--artifact_types"]) == {"inputs": {}, "outputs": {"examples": "tfx.Examples"}}
    assert options["--driver_module"] == "tfx.orchestration.kubeflow.v2.file_based_example_gen.driver"
    assert options["--json_serialized_invocation_args"] == "{{$}}"
    quantizer = container(digits, "quantizer")["args"]
    assert json.loads(quantizer[1])["inputs"]["calibration_data"] == "tfx_edge.CalibrationData"
    assert "--driver_module" not in quantizer and quantizer[-4] == "--runner=DirectRunner"


def test_what_looks_at_the_world_outside_is_not_cached(digits: dict[str, Any]) -> None:
    tasks = digits["root"]["dag"]["tasks"]
    cached = {name for name, task in tasks.items() if task.get("cachingOptions", {}).get("enableCache")}
    assert cached == set(tasks) - {"importexamplegen"}


def test_a_component_whose_driver_looks_at_files_is_cached_where_the_environment_says_so_of_it_by_name() -> None:
    def cached(config: KubeflowConfig) -> bool:
        compiled_digits = yaml.safe_load(compile_pipeline(DIGITS, config, image=IMAGE))
        return bool(compiled_digits["root"]["dag"]["tasks"]["importexamplegen"]["cachingOptions"].get("enableCache"))

    assert not cached(KubeflowConfig(defaults=ComponentConfig(cache=True)))
    assert cached(KubeflowConfig(components={"ImportExampleGen": ComponentConfig(cache=True)}))


@pytest.mark.parametrize("text", ["12e3", "1234e56", "0o17", "017", ".5", "5.", "-3e2", "+1", "y", "N", "1e-5", "0b11"])
def test_a_text_that_go_reads_as_a_number_or_a_boolean_has_quotes(text: str) -> None:
    assert package.dump([{"a": text}]) == f"a: '{text}'\n"


def test_the_same_input_gives_the_same_bytes_in_another_process(digits_text: str) -> None:
    code = f"""
from tfx_edge.kubeflow.compile.compiler import compile_pipeline
from tfx_edge.schemas import KubeflowConfig
print(compile_pipeline({DIGITS!r}, KubeflowConfig(), image={IMAGE!r}), end="")"""
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == digits_text


def test_types_and_defaults_come_from_the_environment_and_arguments_from_the_command_line() -> None:
    parameters = {"text": Parameter(default="you", description="whom"), "times": Parameter(type="NUMBER_INTEGER", default=4)}
    package = spec("says", KubeflowConfig(parameters=parameters), arguments={"greeting": "bye"})
    assert inputs(package) == {
        "text": {"parameterType": "STRING", "defaultValue": "you", "description": "whom"},
        "times": {"parameterType": "NUMBER_INTEGER", "defaultValue": 4},
    }
    task = package["root"]["dag"]["tasks"]["say"]["inputs"]["parameters"]
    one = "{{tfx_edge.inputs['text']}}"
    assert task["text"]["runtimeValue"]["constant"] == f"bye, {one}/{one}" and task["times"] == {"componentInputParameter": "times"}


def test_a_runtime_parameter_of_the_pipelines_own_code_is_an_input_too() -> None:
    package = spec("runtime_parameter")
    assert inputs(package)["times"]["parameterType"] == "NUMBER_INTEGER" and inputs(package)["times"]["defaultValue"] == 3


def test_an_importer_takes_its_uri_from_an_input_by_the_names_that_the_backend_knows() -> None:
    package = spec("imported")
    assert inputs(package) == {"uri": {"parameterType": "STRING"}}
    importer = package["deploymentSpec"]["executors"]["exec-model-importer"]["importer"]
    assert importer["artifactUri"] == {"runtimeParameter": "uri"} and importer["metadata"] == {"n": 2}
    assert importer["typeSchema"] == {"schemaTitle": "tfx.Model", "schemaVersion": "0.0.1"}
    component = package["components"]["comp-model-importer"]
    assert list(component["outputDefinitions"]["artifacts"]) == ["artifact"]
    assert component["inputDefinitions"] == {"parameters": {"uri": {"parameterType": "STRING"}}}
    tasks = package["root"]["dag"]["tasks"]
    assert tasks["model-importer"]["inputs"]["parameters"] == {"uri": {"componentInputParameter": "uri"}}
    assert tasks["hear"]["inputs"]["artifacts"]["model"]["taskOutputArtifact"]["outputArtifactKey"] == "artifact"


def test_a_condition_on_a_custom_property_stays() -> None:
    condition = spec("conditional")["root"]["dag"]["tasks"]["hear"]["triggerPolicy"]["condition"]
    assert "inputs.artifacts['model'].artifacts[0].metadata['blessed'] == 1.0" in condition


def test_an_exit_handler_runs_behind_the_graph_of_all_others_and_both_get_the_inputs() -> None:
    package = spec("with_exit_handler")
    tasks = package["root"]["dag"]["tasks"]
    graph = package["components"]["comp-tfx-dag"]
    assert tasks["mourn"]["triggerPolicy"]["strategy"] == "ALL_UPSTREAM_TASKS_COMPLETED" and tasks["mourn"]["dependentTasks"] == ["tfx-dag"]
    assert tasks["mourn"]["inputs"]["parameters"]["status"]["taskFinalStatus"]["producerTask"] == "tfx-dag"
    assert inputs(package) == graph["inputDefinitions"]["parameters"] == {"where": {"parameterType": "STRING"}}
    assert tasks["tfx-dag"]["inputs"]["parameters"] == {"where": {"componentInputParameter": "where"}}
    assert graph["dag"]["tasks"]["say"]["inputs"]["parameters"]["text"] == {"componentInputParameter": "where"}


def test_the_environment_says_how_containers_run() -> None:
    own = ComponentConfig(
        resources=Resources(cpu_limit=2, memory_request="1Gi", memory_limit="2G"),
        accelerator=Accelerator(type="nvidia.com/gpu", count=2),
        env={"B": "2"},
        secret_env=(SecretEnv(secret="db", key="password", env="DB_PASSWORD"), SecretEnv(secret="db", key="user", env="DB_USER")),
        secret_volumes=(SecretVolume(secret="keys", path="/keys"),),
        volumes=(Volume(claim="models", path="/models"),),
        node_selector={"pool": "gpu"},
        tolerations=(Toleration(key="gpu", operator="Exists", effect="NoExecute", seconds=60),),
        retry=Retry(count=2),
        cache=False,
        beam=DirectBeam(workers=4, extra=("--x=1",)),
    )
    config = KubeflowConfig(pipeline_root="s3://bucket/edge", defaults=ComponentConfig(env={"A": "1", "B": "1"}), components={"Say": own})
    package, platform = compiled("says", config)
    json_format.ParseDict(package, pipeline_spec_pb2.PipelineSpec())
    made, task = container(package, "say"), package["root"]["dag"]["tasks"]["say"]
    assert made["resources"] == {
        "cpuLimit": 2.0, "memoryRequest": 1.073741824, "memoryLimit": 2.0, "accelerator": {"type": "nvidia.com/gpu", "count": "2"},
    }  # fmt: skip
    assert made["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "TFX_EDGE_IMAGE", "value": made["image"]}]
    assert made["args"][-5:] == [
        "--runner=DirectRunner", "--direct_running_mode=in_memory", "--direct_num_workers=4", "--sdk_container_image=none", "--x=1",
    ]  # fmt: skip
    assert (
        task["retryPolicy"]["maxRetryCount"] == 2 and task["cachingOptions"] == {} and package["defaultPipelineRoot"] == "s3://bucket/edge"
    )
    asked = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]["exec-say"]
    assert asked["secretAsEnv"] == [
        {"secretName": "db", "keyToEnv": [{"secretKey": "password", "envVar": "DB_PASSWORD"}, {"secretKey": "user", "envVar": "DB_USER"}]}
    ]
    from kfp.kubernetes import kubernetes_executor_config_pb2

    message = kubernetes_executor_config_pb2.KubernetesExecutorConfig()
    old = "tolerations" not in message.DESCRIPTOR.fields_by_name  # the older line's kfp-kubernetes
    json_format.ParseDict(asked, message, ignore_unknown_fields=old)
    assert message.pvc_mount[0].constant == "models" and message.node_selector.labels["pool"] == "gpu"
    assert message.secret_as_volume[0].mount_path == "/keys"
    if not old:
        [toleration] = message.tolerations
        assert (toleration.key, toleration.operator, toleration.effect, toleration.toleration_seconds) == ("gpu", "Exists", "NoExecute", 60)


def test_vertex_gets_tfxs_own_job_with_inputs_and_a_root_on_google_cloud() -> None:
    config = KubeflowConfig(pipeline_root="gs://bucket/root", parameters={"text": Parameter(default="you")})
    job = json.loads(compile_pipeline("kubeflow_packages:says", config, image=IMAGE, target="vertex"))
    json_format.ParseDict(job, pipeline_spec_pb2.PipelineJob())
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://bucket/root"
    assert inputs(job["pipelineSpec"])["text"]["defaultValue"] == "you"
    with pytest.raises(EdgeError, match="pipeline_root: None; Vertex AI needs one that starts with gs://"):
        compile_pipeline("kubeflow_packages:says", KubeflowConfig(), image=IMAGE, target="vertex")


def test_vertex_gets_an_importer_that_takes_its_uri_from_an_input() -> None:
    config = KubeflowConfig(pipeline_root="gs://bucket/root")
    found = json.loads(compile_pipeline("kubeflow_packages:imported", config, image=IMAGE, target="vertex"))["pipelineSpec"]
    [importer] = [e["importer"] for e in found["deploymentSpec"]["executors"].values() if "importer" in e]
    assert importer["artifactUri"] == {"runtimeParameter": "artifact_uri"}
    parameters = found["root"]["dag"]["tasks"]["Model.Importer"]["inputs"]["parameters"]
    assert parameters["artifact_uri"] == {"componentInputParameter": "uri"} and list(inputs(found)) == ["uri"]


def test_vertex_gets_the_environments_beam_and_refuses_what_is_for_kubernetes() -> None:
    def job(own: ComponentConfig) -> dict[str, Any]:
        config = KubeflowConfig(pipeline_root="gs://bucket/root", components={"Say": own})
        return json.loads(compile_pipeline("kubeflow_packages:says", config, image=IMAGE, target="vertex"))

    beam = DirectBeam(workers=3)
    executors = job(ComponentConfig(beam=beam))["pipelineSpec"]["deploymentSpec"]["executors"]
    assert tuple(executors["Say_executor"]["container"]["args"][-4:]) == beam.arguments(IMAGE)
    with pytest.raises(EdgeError, match="component 'Say': nodeSelector is for Kubernetes"):
        job(ComponentConfig(node_selector={"pool": "gpu"}))


def test_manifests_hold_the_package_and_its_version() -> None:
    pipeline, version = compiled("says", version="0a1b2c")
    assert (pipeline["kind"], version["kind"]) == ("Pipeline", "PipelineVersion")
    assert version["spec"]["pipelineName"] == pipeline["metadata"]["name"] and version["metadata"]["name"] == "small-0a1b2c"
    assert version["spec"]["pipelineSpec"] == spec("says")
    with pytest.raises(EdgeError, match="--version 'A B'"):
        compiled("says", version="A B")


def test_flink_and_spark_are_reached_through_a_job_server_and_workers_get_the_wheel() -> None:
    pool = PortableBeam(kind="flink", job_endpoint="flink:8099", worker_pool="localhost:50000").arguments(IMAGE)
    assert pool[:4] == (
        "--runner=PortableRunner",
        "--job_endpoint=flink:8099",
        "--environment_type=EXTERNAL",
        "--environment_config=localhost:50000",
    )
    containers = PortableBeam(kind="spark", job_endpoint="spark:8099").arguments(IMAGE)
    assert f"--environment_config={IMAGE}" in containers
    assert all(any(a.startswith("--extra_package=/") and a.endswith(".whl") for a in args) for args in (pool, containers))
