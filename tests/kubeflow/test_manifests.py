"""What clusters take from Git, held against KFP's resource definitions, kustomize and itself."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from google.protobuf import json_format
from kfp.kubernetes import kubernetes_executor_config_pb2
from kfp.pipeline_spec import pipeline_spec_pb2

from tfx_edge.kubeflow import package
from tfx_edge.kubeflow.compile.manifests import manifests
from tfx_edge.kubeflow.manifests.committed import FOLDER, PIPELINES, Committed, overlays
from tfx_edge.schemas import DataflowBeam, DirectBeam, EdgeError, KubeflowConfig, PortableBeam
from tfx_edge.schemas.secrets import refuse_secret

DATA = Path(__file__).parents[1] / "data" / "kfp"
ENVIRONMENTS = FOLDER.parent / "environments"
KUSTOMIZE = ["kubectl", "kustomize"] if shutil.which("kubectl") else ["kustomize", "build"]
needs_kustomize = pytest.mark.skipif(shutil.which(KUSTOMIZE[0]) is None, reason="neither kubectl nor kustomize is installed")
every_overlay = pytest.mark.parametrize("overlay", overlays())
IMAGE = "registry.example.com/other@sha256:" + "1" * 64


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def resources(*files: Path) -> list[dict[str, Any]]:
    return [resource for file in files for resource in yaml.safe_load_all(file.read_text())]


def kustomization(folder: Path) -> dict[str, Any]:
    [found] = resources(folder / "kustomization.yaml")
    return found


def declared(overlay: str) -> list[dict[str, Any]]:
    """What an overlay is made of, before kustomize patches it."""
    folder = FOLDER / "overlays" / overlay
    own = [folder / name for name in kustomization(folder)["resources"] if (folder / name).is_file()]
    return resources(*sorted((FOLDER / "base").glob("[!k]*.yaml")), *own)


def kind(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [resource for resource in found if resource["kind"] == name]


def launcher(overlay: str) -> dict[str, Any]:
    [config] = resources(FOLDER / "overlays" / overlay / "launcher.yaml")
    return config["data"]


def built(folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run([*KUSTOMIZE, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


# The custom resources


def schema(plural: str) -> dict[str, Any]:
    """A resource definition's schema, as strict as `kubectl apply`, which refuses fields that it doesn't know."""
    [definition] = resources(DATA / f"pipelines.kubeflow.org_{plural}.yaml")
    found = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    def close(part: dict[str, Any]) -> None:
        for inner in part.get("properties", {}).values():
            close(inner)
        if "properties" in part:
            part["additionalProperties"] = False

    close(found)
    return found


def on_kubernetes(version: dict[str, Any]) -> list[dict[str, Any]]:
    """What a version's executors ask of Kubernetes."""
    if "platformSpec" not in version["spec"]:
        return []
    return list(version["spec"]["platformSpec"]["platforms"]["kubernetes"]["deploymentSpec"]["executors"].values())


def fits(found: list[dict[str, Any]]) -> None:
    """Whether Pipeline and PipelineVersion are what KFP's definitions and messages say."""
    [pipeline], [version] = kind(found, "Pipeline"), kind(found, "PipelineVersion")
    jsonschema.validate(pipeline, schema("pipelines"))
    jsonschema.validate(version, schema("pipelineversions"))
    assert version["spec"]["pipelineName"] == pipeline["metadata"]["name"]
    json_format.ParseDict(version["spec"]["pipelineSpec"], pipeline_spec_pb2.PipelineSpec())
    for config in on_kubernetes(version):
        json_format.ParseDict(config, kubernetes_executor_config_pb2.KubernetesExecutorConfig())


@every_overlay
def test_committed_resources_fit_kfps_definitions(overlay: str) -> None:
    fits(declared(overlay))


def test_the_schemas_refuse_what_kfp_refuses() -> None:
    _, version = manifests([{"pipelineInfo": {"name": "small"}}], "0a1b2c")
    for wrong in ({**version["spec"], "pipelinename": "small"}, {"pipelineName": "small"}, {**version["spec"], "displayName": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**version, "spec": wrong}, schema("pipelineversions"))


@pytest.mark.parametrize(
    ("pipeline", "version", "text"),
    [
        ("Small_One", "1", "pipeline 'Small_One': Kubernetes wants"),
        ("small", "a..b", "--version 'a..b': expected lower-case"),
        ("small", "a" * 250, "it has 256 characters; expected 253 at most"),
    ],
)
def test_names_that_kubernetes_does_not_take_are_refused(pipeline: str, version: str, text: str) -> None:
    with pytest.raises(EdgeError, match=text):
        manifests([{"pipelineInfo": {"name": pipeline}}], version)


# The environments


@pytest.mark.parametrize("name", sorted(file.stem for file in ENVIRONMENTS.glob("*.yaml")))
def test_every_environment_compiles(name: str) -> None:
    each = Committed("digits", FOLDER / "overlays" / name)
    fits(list(yaml.safe_load_all(each.compiled(IMAGE, "0a1b2c"))))


def test_an_environment_says_where_beam_runs() -> None:
    def beam(name: str) -> Any:
        return package.read_config(ENVIRONMENTS / f"{name}.yaml").component("StatisticsGen").beam

    assert isinstance(beam("local"), DirectBeam) and isinstance(beam("cluster"), DirectBeam)
    assert isinstance(beam("flink"), PortableBeam) and isinstance(beam("dataflow"), DataflowBeam)


# What the namespace has


def test_every_pipeline_stands_in_every_overlay() -> None:
    assert {file.relative_to(FOLDER / "overlays").as_posix() for file in FOLDER.glob("overlays/*/*.yaml")} >= {
        f"{overlay}/{name}.yaml" for overlay in overlays() for name in PIPELINES
    }
    assert set(overlays()) <= {file.stem for file in ENVIRONMENTS.glob("*.yaml")}
    assert all(isinstance(package.read_config(file), KubeflowConfig) for file in ENVIRONMENTS.glob("*.yaml"))


@every_overlay
def test_an_overlay_says_of_artifacts_what_its_environment_says(overlay: str) -> None:
    environment = package.read_config(ENVIRONMENTS / f"{overlay}.yaml")
    assert environment.require_digest and launcher(overlay)["defaultPipelineRoot"] == environment.pipeline_root
    assert str(environment.pipeline_root).split(":")[0] in yaml.safe_load(launcher(overlay)["providers"])


@every_overlay
def test_whatever_a_resource_names_is_there(overlay: str) -> None:
    found = declared(overlay)
    names = {(resource["kind"], resource["metadata"]["name"]) for resource in found}
    for binding in kind(found, "RoleBinding"):
        assert {(s["kind"], s["name"]) for s in binding["subjects"]} | {(binding["roleRef"]["kind"], binding["roleRef"]["name"])} <= names
    rules = [rule for role in kind(found, "Role") if role["metadata"]["name"] == "tfx-edge-runner" for rule in role["rules"]]
    assert not any("*" in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]] for rule in rules)
    readable = {name for rule in rules if rule["resources"] == ["secrets"] for name in rule["resourceNames"]}
    [store] = yaml.safe_load(launcher(overlay)["providers"]).values()
    credentials = store["default"]["credentials"]
    assert credentials["fromEnv"] or credentials["secretRef"]["secretName"] in readable
    [version] = kind(found, "PipelineVersion")
    claims = {mount["constant"] for config in on_kubernetes(version) for mount in config.get("pvcMount", [])}
    assert {("PersistentVolumeClaim", claim) for claim in claims} <= names


def test_no_file_holds_a_secret() -> None:
    def texts(part: Any) -> Any:
        if isinstance(part, (dict, list)):
            for inner in part.values() if isinstance(part, dict) else part:
                yield from texts(inner)
        elif isinstance(part, str):
            yield part

    for resource in resources(*FOLDER.rglob("*.yaml"), *ENVIRONMENTS.glob("*.yaml")):
        assert resource.get("kind") != "Secret" and not {"secretGenerator", "stringData"} & set(resource)
        for text in texts(resource):
            refuse_secret("value", text, "a secret")


# kustomize


@pytest.mark.parametrize("folder", sorted(file.parent for file in FOLDER.rglob("kustomization.yaml")), ids=lambda folder: folder.name)
def test_a_kustomization_names_every_file_beside_it_and_no_other(folder: Path) -> None:
    found = kustomization(folder)
    assert set(found) <= {"apiVersion", "kind", "namespace", "resources", "components", "patches", "labels"}
    named = [*found.get("resources", []), *found.get("components", []), *(p["path"] for p in found.get("patches", []) if "path" in p)]
    assert len(named) == len(set(named))
    for name in named:
        path = folder / name
        assert path.is_file() or (path / "kustomization.yaml").is_file()
    assert {file.name for file in folder.glob("*.yaml")} == {name for name in named if ".." not in name} | {"kustomization.yaml"}


@needs_kustomize
@every_overlay
def test_kustomize_builds_an_overlay_and_leaves_the_package_as_it_is(overlay: str) -> None:
    found = built(FOLDER / "overlays" / overlay)
    fits(found)
    assert {resource["metadata"]["namespace"] for resource in found} == {"tfx-edge"}
    assert {s["namespace"] for binding in kind(found, "RoleBinding") for s in binding["subjects"]} == {"tfx-edge"}
    assert [config["data"] for config in kind(found, "ConfigMap")] == [launcher(overlay)]
    [pipeline], [version], [own] = kind(found, "Pipeline"), kind(found, "PipelineVersion"), kind(declared(overlay), "PipelineVersion")
    assert version["spec"] == own["spec"] and version["metadata"]["name"] == own["metadata"]["name"]
    for each, wave in ((pipeline, None), (version, "1")):
        notes = each["metadata"]["annotations"]
        assert notes["argocd.argoproj.io/sync-options"] == "Prune=false" and notes.get("argocd.argoproj.io/sync-wave") == wave


@needs_kustomize
def test_a_commit_that_go_would_read_as_a_number_stays_a_name(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(package.dump(manifests([{"pipelineInfo": {"name": "small"}}], "1234e56")))
    (tmp_path / "kustomization.yaml").write_text("resources: [small.yaml]\n")
    [version] = kind(built(tmp_path), "PipelineVersion")
    assert version["metadata"]["name"] == "small-1234e56"
    assert all(isinstance(value, (str, dict)) for value in version["spec"].values())
