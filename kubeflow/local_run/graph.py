"""A graph of tasks, run as KFP's compiler lays it out for Argo.

A task runs when all it waits for succeeded; behind a failed or skipped task everything is skipped, while other branches go on.
An exit handler runs when what it waits for has ended after it had begun, however it ended.
Source: backend/src/v2/compiler/argocompiler/dag.go of kubeflow/pipelines.
"""

import asyncio
from collections.abc import Mapping

from tfx_edge.kubeflow.local_run.driver import DriverError, Ended, Inputs, resolve, triggers, with_defaults
from tfx_edge.kubeflow.local_run.metadata import Outputs
from tfx_edge.kubeflow.local_run.plan import Graph, PlannedTask
from tfx_edge.kubeflow.local_run.spec import Importer
from tfx_edge.kubeflow.local_run.tasks import Context, import_artifact, run_container
from tfx_edge.schemas import RecordedArtifact

SUCCESS = {"SUCCEEDED", "CACHED"}


async def run_graph(graph: Graph, inputs: Inputs, context: Context) -> Ended:
    """Runs all tasks, each as soon as it may, and gives what the graph puts out."""
    ended: dict[str, asyncio.Task[Ended]] = {}
    for planned in graph.tasks:  # in order: what a task waits for is there already
        waits = {name: ended[name] for name in planned.upstream}
        ended[planned.key] = asyncio.create_task(_run_when_ready(planned, waits, inputs, context))
    try:
        results = dict(zip(ended, await asyncio.gather(*ended.values()), strict=True))
    except BaseException:
        for task in ended.values():
            task.cancel()
        await asyncio.gather(*ended.values(), return_exceptions=True)  # their commands have ended then
        raise
    failed = [name for name, result in results.items() if result.state == "FAILED"]
    if failed:
        return Ended("FAILED", f"{', '.join(failed)} failed", None)
    return Ended("SUCCEEDED", "", _outputs(graph, results))


async def _run_when_ready(planned: PlannedTask, waits: Mapping[str, "asyncio.Task[Ended]"], inputs: Inputs, context: Context) -> Ended:
    upstream = {name: await task for name, task in waits.items()}
    missing = [name for name, result in upstream.items() if not _lets_run(planned, result)]
    if missing:
        result = Ended("SKIPPED", f"{', '.join(missing)} didn't succeed", None)
    else:
        try:
            result = await _run(planned, inputs, upstream, context)
        except DriverError as error:
            result = Ended("FAILED", str(error), None)
    _record(planned, result, context)
    return result


def _lets_run(planned: PlannedTask, upstream: Ended) -> bool:
    return upstream.state != "SKIPPED" if planned.task.is_exit_handler else upstream.state in SUCCESS


async def _run(planned: PlannedTask, graph: Inputs, upstream: Mapping[str, Ended], context: Context) -> Ended:
    inputs = resolve(planned.task, planned.component, graph, upstream, context.run)
    if not triggers(planned.condition, inputs):
        return Ended("SKIPPED", "its condition doesn't hold", None)
    if isinstance(planned.body, Graph):
        return await run_graph(planned.body, with_defaults(inputs, planned.component), context)
    if isinstance(planned.body, Importer):
        return import_artifact(planned, planned.body, inputs, context)
    return await run_container(planned, planned.body, inputs, context)


def _outputs(graph: Graph, results: Mapping[str, Ended]) -> Outputs:
    """What tasks inside put out, under the graph's own keys; of several candidates the first that succeeded."""
    parameters = {}
    for name, parameter in graph.dag.outputs.parameters.items():
        for selector in parameter.selectors():
            found = results[selector.producer_subtask].outputs
            if found is not None and selector.output_parameter_key in found.parameters:
                parameters[name] = found.parameters[selector.output_parameter_key]
                break
    artifacts = {}
    for name, artifact in graph.dag.outputs.artifacts.items():
        for chosen in artifact.artifact_selectors:
            found = results[chosen.producer_subtask].outputs
            if found is not None and chosen.output_artifact_key in found.artifacts:
                artifacts[name] = found.artifacts[chosen.output_artifact_key]
                break
    return Outputs(parameters, artifacts)


def _record(planned: PlannedTask, result: Ended, context: Context) -> None:
    if isinstance(planned.body, Graph):
        for leaf in planned.body.leaves():
            if context.record.run.tasks[leaf.name].state == "PENDING":  # the graph itself was skipped, or its inputs are missing
                context.record.update(leaf.name, state="SKIPPED", reason=f"{planned.name}: {result.reason}")
        return
    outputs = result.outputs or Outputs({}, {})
    artifacts = {
        key: tuple(
            RecordedArtifact(
                number=artifact.number,
                uri=artifact.uri,
                path=str(context.places.here(artifact.uri)) if context.places.here(artifact.uri) is not None else None,
                type=artifact.type,
                metadata=artifact.metadata,
            )
            for artifact in listed
        )
        for key, listed in outputs.artifacts.items()
    }
    context.record.update(planned.name, state=result.state, reason=result.reason, parameters=outputs.parameters, artifacts=artifacts)
