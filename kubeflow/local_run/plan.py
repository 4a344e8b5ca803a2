"""What a run will do, checked before it starts: every task of every graph, its condition, and what can't run here."""

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from tfx_edge.kubeflow.local_run import cel
from tfx_edge.kubeflow.local_run.platform import NOTHING, ExecutorPlatform
from tfx_edge.kubeflow.local_run.spec import ROOT, Component, Container, Dag, Importer, Pipeline, Task
from tfx_edge.schemas import EdgeError


@dataclass(frozen=True)
class PlannedTask:
    """A task with all that it refers to.

    Args:
        name: Its name in the run: `graph/task` inside a graph.
        key: Its name in its graph.
        upstream: The tasks of its graph it waits for.
        body: What it is: a command, an import, or a graph.
    """

    name: str
    key: str
    task: Task
    component: Component
    condition: cel.Condition | None
    upstream: tuple[str, ...]
    body: "Container | Importer | Graph"
    platform: ExecutorPlatform


@dataclass(frozen=True)
class Graph:
    """Tasks in an order in which each comes behind those it waits for."""

    dag: Dag
    tasks: tuple[PlannedTask, ...]

    def leaves(self) -> Iterator[PlannedTask]:
        """All tasks, graphs aside, in order."""
        for planned in self.tasks:
            if isinstance(planned.body, Graph):
                yield from planned.body.leaves()
            else:
                yield planned


def plan(pipeline: Pipeline, platforms: dict[str, ExecutorPlatform]) -> Graph:
    """Plans the pipeline.

    Raises:
        EdgeError: the package refers to what isn't in it, or asks for what KFP or this runner can't do.
    """
    if pipeline.root.dag is None:
        raise EdgeError("the package's root has no tasks")
    return _graph(pipeline, platforms, pipeline.root.dag, "", (ROOT,))


def _graph(pipeline: Pipeline, platforms: dict[str, ExecutorPlatform], dag: Dag, prefix: str, inside: tuple[str, ...]) -> Graph:
    waits = {key: task.upstream() for key, task in dag.tasks.items()}
    for key, upstream in waits.items():
        for name in upstream:
            if name not in dag.tasks:
                raise EdgeError(f"task {prefix}{key}: waits for {name}, which its graph doesn't have")
    try:
        sorter = TopologicalSorter({key: waits[key] for key in sorted(waits)})
        order = list(sorter.static_order())
    except CycleError as error:
        raise EdgeError(f"tasks wait for each other: {' -> '.join(error.args[1])}") from None
    for name in sorted(dag.outputs.producers() - set(dag.tasks)):
        raise EdgeError(f"{f'task {prefix[:-1]}' if prefix else 'the pipeline'}: puts out what {name} makes, which its graph doesn't have")
    return Graph(dag, tuple(_task(pipeline, platforms, key, dag.tasks[key], prefix, inside) for key in order))


def _task(
    pipeline: Pipeline, platforms: dict[str, ExecutorPlatform], key: str, task: Task, prefix: str, inside: tuple[str, ...]
) -> PlannedTask:
    name = prefix + key
    where = f"task {name}"
    component_name = task.component_ref.name
    if component_name not in pipeline.components:
        raise EdgeError(f"{where}: component {component_name} isn't in the package")
    if task.parameter_iterator is not None or task.artifact_iterator is not None:
        raise EdgeError(f"{where}: loops (ParallelFor) don't run here; run this package on a cluster")
    if any(source.parameter_expression_selector for source in task.inputs.parameters.values()):
        raise EdgeError(f"{where}: an input is selected by an expression, which doesn't run here; run this package on a cluster")
    if task.is_exit_handler and not task.dependent_tasks:
        raise EdgeError(f"{where}: an exit handler that waits for no task never runs on KFP; name the task in its dependentTasks")
    component = pipeline.components[component_name]
    if component.dag is not None:
        if component_name in inside:
            raise EdgeError(f"{where}: component {component_name} is inside itself")
        body: Container | Importer | Graph = _graph(pipeline, platforms, component.dag, f"{name}/", (*inside, component_name))
    else:
        body = _executor(pipeline, component, task, where)
    return PlannedTask(
        name,
        key,
        task,
        component,
        _condition(task, where),
        tuple(task.upstream()),
        body,
        platforms.get(component.executor_label, NOTHING),
    )


def _executor(pipeline: Pipeline, component: Component, task: Task, where: str) -> Container | Importer:
    executor = pipeline.deployment_spec.executors.get(component.executor_label)
    if executor is None:
        raise EdgeError(f"{where}: executor {component.executor_label!r} isn't in the package")
    if executor.container is not None:
        if not executor.container.command and not executor.container.args:
            raise EdgeError(f"{where}: no command; KFP's launcher needs one, whatever the image's entry point is")
        return executor.container
    if executor.importer is None:
        kind = "resolvers" if executor.resolver is not None else "executors of this kind"
        raise EdgeError(f"{where}: {kind} don't run on KFP outside Vertex AI")
    if len(component.output_definitions.artifacts) != 1:
        raise EdgeError(f"{where}: an importer puts out one artifact; it declares {len(component.output_definitions.artifacts)}")
    if task.trigger_policy.condition:
        raise EdgeError(f"{where}: KFP takes no condition on an importer; put it on the tasks behind it")
    parameter = executor.importer.artifact_uri.runtime_parameter
    source = task.inputs.parameters.get(parameter)
    if parameter and (source is None or source.component_input_parameter is None):
        raise EdgeError(f"{where}: an importer's uri is a constant or an input of the pipeline; {parameter} is neither")
    if not parameter and not isinstance(executor.importer.artifact_uri.constant, str):
        raise EdgeError(f"{where}: the importer has no uri")
    return executor.importer


def _condition(task: Task, where: str) -> cel.Condition | None:
    if not task.trigger_policy.condition:
        return None
    try:
        condition = cel.parse(task.trigger_policy.condition)
    except EdgeError as error:
        raise EdgeError(f"{where}: {error}") from None
    for kind, used, known in (
        ("parameter", condition.parameters, task.inputs.parameters),
        ("artifact", condition.artifacts, task.inputs.artifacts),
    ):
        for missing in sorted(used - set(known)):
            raise EdgeError(f"{where}: its condition {condition.text!r} reads {kind} {missing}, which isn't an input of the task")
    return condition
