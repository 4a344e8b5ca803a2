"""The PipelineJob of TFX's runner to a package that open-source KFP 2 runs.

What differs, and why, is in docs/internals.md. Source of the rules: backend/src/v2 of kubeflow/pipelines, 2.0 to 2.16.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from tfx_edge.kubeflow.compile.containers import INPUTS_SPEC, apply_container, apply_task, kubernetes, of_tfx, parted
from tfx_edge.kubeflow.compile.inputs import connect, kfp_placeholder, placeholder, refuse_stand_ins
from tfx_edge.kubeflow.compile.names import slugs
from tfx_edge.schemas import KubeflowConfig, Parameter

ENTRYPOINT = ("python", "-m", "tfx_edge.kubeflow.entrypoint")
_URI, _ARTIFACT = "uri", "artifact"  # by these names the backend looks for an importer's input and output


@dataclass(frozen=True)
class _Rewriting:
    """What the parts of one rewriting share."""

    config: KubeflowConfig
    names: Mapping[str, str]
    pipeline: str
    executors: dict[str, Any] = field(default_factory=dict)
    platform: dict[str, Any] = field(default_factory=dict)
    importers: set[str] = field(default_factory=set)
    uncached: set[str] = field(default_factory=set)


def rewrite(job: dict[str, Any], config: KubeflowConfig, inputs: Mapping[str, Parameter]) -> list[dict[str, Any]]:
    """Rewrites a PipelineJob.

    Args:
        job: of schema 2.1.
        config: of the environment.
        inputs: of the pipeline, by name, as far as the job doesn't know them: types, defaults, descriptions.

    Returns:
        The package's documents: the PipelineSpec, and what it asks of Kubernetes, where it asks for anything.

    Raises:
        EdgeError: names that collide, an importer that KFP can't do, an input where none can be.
    """
    spec = copy.deepcopy(job["pipelineSpec"])
    components, executors = spec["components"], spec["deploymentSpec"]["executors"]
    for graph in [spec["root"], *components.values()]:
        _type_outputs(graph.get("dag", {}).get("tasks", {}), components, executors)
    work = _Rewriting(config, slugs(components), spec["pipelineInfo"]["name"])
    for name, component in components.items():
        if "dag" not in component:
            _rewrite_component(name, component, executors[component["executorLabel"]], work)
    for component in components.values():
        if "dag" in component:  # of an exit handler: all but itself
            _connect_graph(component, components, work)
    _connect_graph(spec["root"], components, work)
    spec["components"] = {f"comp-{work.names[name]}": component for name, component in components.items()}
    spec["deploymentSpec"]["executors"] = work.executors
    _declare(spec["root"], inputs)
    if config.pipeline_root:
        spec["defaultPipelineRoot"] = config.pipeline_root
    refuse_stand_ins(spec)
    platform = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": work.platform}}}}
    return [spec, platform] if work.platform else [spec]


def _type_outputs(tasks: dict[str, Any], components: dict[str, Any], executors: dict[str, Any]) -> None:
    """Another component's output as a parameter: of the output's type. TFX says STRING, and an executor would get the text of a number."""
    for task in tasks.values():
        component = components[task["componentRef"]["name"]]
        for name, source in task.get("inputs", {}).get("parameters", {}).items():
            if "taskOutputParameter" not in source:
                continue
            output = source["taskOutputParameter"]
            producer = components[_producer(output["producerTask"], components)]
            kind = producer["outputDefinitions"]["parameters"][output["outputParameterKey"]]["parameterType"]
            component["inputDefinitions"]["parameters"][name]["parameterType"] = kind
            arguments = executors[component["executorLabel"]]["container"]["args"]
            told = arguments.index(INPUTS_SPEC) + 1
            told_types = json.loads(arguments[told])
            told_types["parameters"][name]["parameterType"] = kind
            arguments[told] = json.dumps(told_types, indent=2, sort_keys=True)


def _rewrite_component(name: str, component: dict[str, Any], executor: dict[str, Any], work: _Rewriting) -> None:
    """A component and its executor, which gets the name that KFP's own compiler would give it."""
    titles: dict[str, dict[str, str]] = {}
    for side, definitions in (("inputs", "inputDefinitions"), ("outputs", "outputDefinitions")):
        artifacts = component.get(definitions, {}).get("artifacts", {})
        titles[side] = {key: _title(artifact["artifactType"]) for key, artifact in artifacts.items()}
        for key, artifact in artifacts.items():
            artifact["artifactType"] = _type(titles[side][key])
    label = component["executorLabel"] = f"exec-{work.names[name]}"
    own = work.config.component(name)
    if "importer" in executor:
        work.importers.add(name)
        _rewrite_importer(component, executor["importer"])
    else:
        about = ["--pipeline", work.pipeline, "--component", name]
        if _rewrite_container(executor["container"], titles, own, about):
            work.uncached.add(name)
        asked = kubernetes(own)
        if asked:
            work.platform[label] = asked
    work.executors[label] = executor


def _rewrite_importer(component: dict[str, Any], importer: dict[str, Any]) -> None:
    importer["typeSchema"] = _type(_title(importer["typeSchema"]))
    importer["artifactUri"] = {"runtimeParameter": _URI}
    component["inputDefinitions"] = {"parameters": {_URI: {"parameterType": "STRING"}}}
    (artifact,) = component["outputDefinitions"]["artifacts"].values()
    component["outputDefinitions"]["artifacts"] = {_ARTIFACT: artifact}


def _rewrite_container(container: dict[str, Any], titles: dict[str, dict[str, str]], own: Any, about: list[str]) -> bool:
    """Whether it has a driver, which looks at the world outside, so that the backend's cache, by inputs alone, may not answer for it."""
    apply_container(container, own)
    if not of_tfx(container):
        return False
    arguments, beam = parted(container, own)
    driver = container.pop("lifecycle", {}).get("preCacheCheck")  # the backend ignores it: the entry point runs it
    container["command"] = list(ENTRYPOINT)
    container["args"] = [
        "--artifact_types",
        json.dumps(titles, sort_keys=True),
        *about,
        *(["--driver_module", driver["command"][-1]] if driver else []),
        *arguments,
        *beam,
    ]
    return driver is not None


def _connect_graph(component: dict[str, Any], components: dict[str, Any], work: _Rewriting) -> None:
    """The tasks of a graph: names, importers' keys, inputs, caching and retry."""
    graph, tasks = component["dag"], {}
    taken: set[str] = set()
    for name, task in graph["tasks"].items():
        producer = task["componentRef"]["name"]
        task["componentRef"]["name"] = f"comp-{work.names[producer]}"
        task["taskInfo"]["name"] = work.names[name]
        if "dependentTasks" in task:
            task["dependentTasks"] = sorted(work.names[other] for other in task["dependentTasks"])
        inputs = task.setdefault("inputs", {})
        for artifact in inputs.get("artifacts", {}).values():
            source = artifact["taskOutputArtifact"]
            if source["producerTask"] in work.importers:
                source["outputArtifactKey"] = _ARTIFACT
            source["producerTask"] = work.names[source["producerTask"]]
        for parameter in inputs.get("parameters", {}).values():
            for kind in ("taskOutputParameter", "taskFinalStatus"):
                if kind in parameter:
                    source = parameter[kind]
                    source["producerTask"] = work.names[_producer(source["producerTask"], work.names)]
        if producer in work.importers:
            inputs["parameters"] = {_URI: inputs["parameters"]["artifact_uri"]}
        if "dag" in components[producer]:
            passed = components[producer].get("inputDefinitions", {}).get("parameters", {})
            inputs["parameters"] = {name: {"componentInputParameter": name} for name in passed}
        else:
            own = work.config.component(producer)
            named = work.config.components.get(producer)
            asked = named is not None and named.cache  # for this very component, by who knows that the files stay as they are
            apply_task(task, own, cached=False if producer in work.uncached and not asked else None)
        executor = work.executors.get(components[producer].get("executorLabel", ""), {})
        text = placeholder if of_tfx(executor.get("container", {})) else kfp_placeholder
        taken.update(connect(task, components[producer], f"component {producer!r}", placeholder=text))
        if not inputs:
            del task["inputs"]
        tasks[work.names[name]] = task
    graph["tasks"] = tasks
    known = component.setdefault("inputDefinitions", {}).setdefault("parameters", {})
    for name in sorted(taken):
        known.setdefault(name, {"parameterType": "STRING"})
    if not known:
        del component["inputDefinitions"]


def _producer(task: str, names: Mapping[str, Any]) -> str:
    """TFX names the producer of a parameter `<id>_task`, where all else has the id alone."""
    return task if task in names else task.removesuffix("_task")


def _declare(root: dict[str, Any], inputs: Mapping[str, Parameter]) -> None:
    known = root.get("inputDefinitions", {}).get("parameters", {})
    for name, parameter in inputs.items():
        if name not in known:
            continue  # it is in the pipeline_root alone
        known[name] = {"parameterType": parameter.type}
        if parameter.default is not None:
            known[name]["defaultValue"] = parameter.default
        if parameter.description:
            known[name]["description"] = parameter.description


def _title(schema: dict[str, Any]) -> str:
    if "instanceSchema" in schema:
        return str(yaml.safe_load(schema["instanceSchema"])["title"])
    return str(schema["schemaTitle"])


def _type(title: str) -> dict[str, str]:
    return {"schemaTitle": title, "schemaVersion": "0.0.1"}
