"""A whole run: read, check, run, record."""

import asyncio
import datetime
import hashlib
import os
import signal
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tfx_edge.kubeflow.local_run.driver import Inputs, RunInfo
from tfx_edge.kubeflow.local_run.engines import Engine
from tfx_edge.kubeflow.local_run.engines.docker import DockerEngine
from tfx_edge.kubeflow.local_run.engines.host import HostEngine
from tfx_edge.kubeflow.local_run.graph import run_graph
from tfx_edge.kubeflow.local_run.metadata import MetadataStore
from tfx_edge.kubeflow.local_run.package_file import read_package
from tfx_edge.kubeflow.local_run.places import Places
from tfx_edge.kubeflow.local_run.plan import Graph, plan
from tfx_edge.kubeflow.local_run.record import Record, Report
from tfx_edge.kubeflow.local_run.spec import Container
from tfx_edge.kubeflow.local_run.tasks import Context
from tfx_edge.kubeflow.local_run.values import read_parameters
from tfx_edge.schemas import EdgeError, PackageRun, TaskRecord
from tfx_edge.schemas.package_run import EngineName


@dataclass(frozen=True)
class Options:
    """How a package is run.

    Args:
        root: The folder for artifacts, records and logs.
        engine: Containers, or processes of this machine.
        parameters: The pipeline's inputs, as text.
        use_cache: Whether equal executions' outputs are taken.
        jobs: How many tasks may run at once.
        user: docker: `UID[:GID]`; None: the caller.
        volumes: docker: more binds, `HOST:CONTAINER[:ro]`.
    """

    root: Path
    engine: EngineName = "docker"
    parameters: Mapping[str, str] = field(default_factory=dict)
    use_cache: bool = True
    jobs: int = 1
    user: str | None = None
    volumes: tuple[str, ...] = ()


def run_package(
    package: Path, options: Options, *, report: Report = lambda task, record: None, warn: Callable[[str], None] = lambda text: None
) -> tuple[PackageRun, Path]:
    """Runs a package to its end.

    Args:
        package: The file that `tfx-edge compile` wrote.
        options: How.
        report: Called when a task has ended.
        warn: Called with what the engine can't give.

    Returns:
        The record, and its file. A failed task fails the run; SIGINT, SIGTERM and SIGHUP cancel it, and all commands have ended
        then: neither is an exception, the record's state says so.

    Raises:
        EdgeError: the package, a parameter, the root or the engine can't be used; nothing has run.
    """
    pipeline, platforms = read_package(package)
    graph = plan(pipeline, platforms)
    parameters = read_parameters(pipeline.root.input_definitions.parameters, options.parameters)
    secrets = _secrets(graph)
    root = _root(options.root)
    engine = _engine(root, options)
    images = {leaf.name: leaf.body.image for leaf in graph.leaves() if isinstance(leaf.body, Container)}
    for text in engine.check(images, {leaf.name: leaf.platform for leaf in graph.leaves()}):
        warn(text)
    store = MetadataStore(root / "metadata.sqlite")
    now = datetime.datetime.now(datetime.timezone.utc)
    started = now.isoformat(timespec="seconds")
    info = RunInfo(pipeline.pipeline_info.name, f"{now:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}", started)
    folder = _folder(root, info.run_id)
    record = Record(
        folder / "run.json",
        PackageRun(
            pipeline=info.pipeline,
            run_id=info.run_id,
            package=str(package),
            package_sha256=hashlib.sha256(package.read_bytes()).hexdigest(),
            engine=options.engine,
            parameters=parameters,
            started=started,
            tasks={leaf.name: TaskRecord() for leaf in graph.leaves()},
        ),
        report,
    )
    places = Places(root, engine.prefix)

    async def run() -> None:
        context = Context(info, engine, places, store, record, folder / "logs", asyncio.Semaphore(options.jobs), options.use_cache, secrets)
        _cancel_on_signals()
        state = "FAILED"
        try:
            state = (await run_graph(graph, Inputs(parameters, {}), context)).state
        except asyncio.CancelledError:
            state = "CANCELED"
        finally:
            record.finish(state)

    asyncio.run(run())
    return record.run, record.path


def _cancel_on_signals() -> None:
    """Ctrl-C, a CI system's signal and a closed terminal cancel the run, so that every command is ended before the process goes."""
    running = asyncio.current_task()
    if running is None or threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)


def _secrets(graph: Graph) -> dict[str, str]:
    """Variables that a cluster takes from secrets and config maps come from the caller's environment."""
    values = {}
    for leaf in graph.leaves():
        for source in leaf.platform.variables:
            for key in source.key_to_env:
                if key.env_var in os.environ:
                    values[key.env_var] = os.environ[key.env_var]
                elif not source.optional:
                    raise EdgeError(
                        f"task {leaf.name}: {key.env_var} comes from {source.source} on a cluster; set {key.env_var} in this environment"
                    )
    return values


def _root(root: Path) -> Path:
    root = root.expanduser().resolve()
    try:
        root.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=root).close()
    except OSError as error:
        raise EdgeError(f"--root {root}: can't be written ({error.strerror}); give another folder") from None
    return root


def _folder(root: Path, run_id: str) -> Path:
    folder = root / "runs" / run_id
    try:
        (folder / "logs").mkdir(parents=True)
    except OSError as error:
        raise EdgeError(f"--root {root}: {error.filename}: {error.strerror}; give another folder, or remove what is in the way") from None
    return folder


def _engine(root: Path, options: Options) -> Engine:
    if options.engine == "host":
        if options.user or options.volumes:
            raise EdgeError("--user and --volume are for containers; leave them out, or use --engine docker")
        return HostEngine(root)
    return DockerEngine(root, options.user, options.volumes)
