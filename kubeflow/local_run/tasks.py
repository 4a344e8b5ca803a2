"""One task from its driver to its recorded outputs."""

import asyncio
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfx_edge.kubeflow.local_run.driver import DriverError, Ended, Inputs, RunInfo, fingerprint, provide_outputs, with_defaults
from tfx_edge.kubeflow.local_run.engines import Engine, Step, StepError
from tfx_edge.kubeflow.local_run.launcher import LauncherError, collect, discard, fill, prepare
from tfx_edge.kubeflow.local_run.metadata import Artifact, MetadataStore, Outputs
from tfx_edge.kubeflow.local_run.places import Places
from tfx_edge.kubeflow.local_run.plan import PlannedTask
from tfx_edge.kubeflow.local_run.record import Record
from tfx_edge.kubeflow.local_run.retry import limit, wait_before
from tfx_edge.kubeflow.local_run.spec import Container, Importer


@dataclass(frozen=True)
class Context:
    """What all tasks of a run share.

    Args:
        turns: As many as tasks may run at once.
        secrets: Values of the variables that come from secrets.
    """

    run: RunInfo
    engine: Engine
    places: Places
    store: MetadataStore
    record: Record
    logs: Path
    turns: asyncio.Semaphore
    use_cache: bool
    secrets: Mapping[str, str]


async def run_container(planned: PlannedTask, container: Container, inputs: Inputs, context: Context) -> Ended:
    """Takes equal outputs from the cache, or runs the command until it succeeds or no attempt is left."""
    async with context.turns:
        context.record.update(planned.name, state="RUNNING")
        outputs = provide_outputs(planned.key, planned.component, context.run, context.places)
        key = ""
        if context.use_cache and planned.task.caching_options.enable_cache:
            claims = [mount.claim for mount in planned.platform.pvc_mount]
            # A process of this machine isn't the image: what it made is no container's result.
            key = f"{context.record.run.engine}:{fingerprint(container, planned.component, inputs, outputs, claims)}"
            found = context.store.recall(context.run.pipeline, key)
            if found is not None and _is_there(found, context.places):
                return Ended("CACHED", "", found)
        ended = await _attempts(planned, container, with_defaults(inputs, planned.component), outputs, context)
        if key and ended.outputs is not None:
            context.store.remember(context.run.pipeline, key, ended.outputs)
        return ended


def import_artifact(planned: PlannedTask, importer: Importer, inputs: Inputs, context: Context) -> Ended:
    """Records an artifact that exists; without `reimport` the same artifact is taken again, by its number.

    Raises:
        DriverError: the address is empty.
    """
    parameter = importer.artifact_uri.runtime_parameter
    uri = inputs.parameters.get(parameter) if parameter else importer.artifact_uri.constant
    if not isinstance(uri, str) or not uri:
        raise DriverError("the importer's uri is empty")
    (key,) = planned.component.output_definitions.artifacts
    arguments = (context.run.pipeline, uri, importer.type_schema.schema_title, importer.metadata)
    artifact = None if importer.reimport else context.store.find(*arguments)
    if artifact is None:
        artifact = context.store.record(context.run.pipeline, key, *arguments[1:])
    return Ended("SUCCEEDED", "", Outputs({}, {key: [artifact]}))


async def _attempts(planned: PlannedTask, container: Container, inputs: Inputs, outputs: dict[str, Any], context: Context) -> Ended:
    command = fill(container, inputs, outputs, context.places)
    started = time.monotonic()
    attempt = 1
    while True:
        log = _log(planned.name, attempt, context)
        context.record.update(planned.name, attempts=attempt, log=str(log), exit_status=None)
        taken = None
        try:
            writable = prepare(outputs, context.places)
            step = Step(planned.name, container.image, command, _env(planned, container, context), planned.platform, log, writable)
            left = None if attempt == 1 else limit(planned.task.retry_policy) - (time.monotonic() - started)
            status = await asyncio.wait_for(context.engine.run(step), left)
            context.record.update(planned.name, exit_status=status)
            reason = _reason(status)
            if status == 0:
                taken = collect(context.run.pipeline, planned.component, container, outputs, context.places, log, context.store)
                return Ended("SUCCEEDED", "", taken)
        except (StepError, LauncherError) as error:
            reason = str(error)
        except asyncio.TimeoutError:
            reason = f"ended, as its retry policy allows {planned.task.retry_policy.backoff_max_duration} from the first attempt's start"
        finally:
            if taken is None:
                discard(outputs, context.places)
        wait = wait_before(attempt + 1, planned.task.retry_policy, time.monotonic() - started)
        if wait is None:
            return Ended("FAILED", reason, None)
        await asyncio.sleep(wait)
        attempt += 1


def _env(planned: PlannedTask, container: Container, context: Context) -> dict[str, str]:
    secrets = (key.env_var for source in planned.platform.variables for key in source.key_to_env)
    return {
        **{variable.name: variable.value for variable in container.env},
        **{name: context.secrets[name] for name in secrets if name in context.secrets},
    }


def _reason(status: int) -> str:
    """An exit status above 128 is a signal's, as shells and containers have it."""
    try:
        return f"exit status {status} ({signal.Signals(status - 128).name})"
    except ValueError:
        return f"exit status {status}"


def _log(name: str, attempt: int, context: Context) -> Path:
    stem = name.replace("/", ".")
    log = context.logs / (f"{stem}.log" if attempt == 1 else f"{stem}.{attempt}.log")
    log.touch()
    return log


def _is_there(outputs: Outputs, places: Places) -> bool:
    """Somebody may have removed files of an earlier run: KFP would fail behind such a hit, here the task runs again."""
    listed: list[Artifact] = [artifact for artifacts in outputs.artifacts.values() for artifact in artifacts]
    paths = [places.here(artifact.uri) for artifact in listed]
    return all(path is None or path.parent.exists() for path in paths)
