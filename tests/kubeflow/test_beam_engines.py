"""A component's Beam pipeline through a job server and a worker pool, in processes of their own, as a package has it run on Flink or Spark."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from calibration_runs import SCHEMA, UNIFORM, encode, files, population
from calibration_runs import run as run_in_memory
from example_shards import examples_artifact, transform_graph_artifact
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor

from tfx_edge.components import keys
from tfx_edge.components.calibration_gen.executor import Executor
from tfx_edge.schemas.artifact_types import CalibrationData
from tfx_edge.schemas.beam import WHEEL, PortableBeam

ROOT = Path(__file__).parent.parent.parent
# Tells, where it is asked to, which copy of the package a process runs.
TRACE = """
import os as _os
if "TFX_EDGE_TRACE" in _os.environ:
    with open(_os.environ["TFX_EDGE_TRACE"], "a") as _file:
        _file.write(__file__ + "\\n")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, of the files that the image is built from, and with a trace in it."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in (line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            (source / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    with (source / "__init__.py").open("a") as file:
        file.write(TRACE)
    code = f"from setuptools import build_meta; build_meta.build_wheel({str(target)!r})"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=source, capture_output=True)
    [built] = target.iterdir()
    assert built.name == Path(WHEEL).name
    return built


@contextmanager
def service(*command: str, port: int, log: Path, **variables: str) -> Iterator[str]:
    """A gRPC service of Beam's in a process group of its own; gives its host and port once it answers."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            env={**os.environ, **variables},
            cwd=log.parent,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        grpc.channel_ready_future(grpc.insecure_channel(f"localhost:{port}")).result(timeout=120)
        yield f"localhost:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        port: int = found.getsockname()[1]
        return port


def test_workers_run_the_staged_wheel_and_the_sample_has_the_bytes_of_one_process(wheel: Path, tmp_path: Path) -> None:
    records = encode(population())
    expected = files(run_in_memory(tmp_path / "here", [records]))
    boot, trace, ports = tmp_path / "boot", tmp_path / "trace", (free_port(), free_port())
    boot.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "tests/support/beam_boot.py"} "$@"\n')
    boot.chmod(0o755)
    examples = examples_artifact(tmp_path / "examples", {"train": [records], "eval": [[]]})
    graph = transform_graph_artifact(tmp_path / "graph", SCHEMA)
    output = CalibrationData()
    output.uri = str(tmp_path / "output")
    jobs = ("apache_beam.runners.portability.local_job_service_main", f"--port={ports[0]}", f"--staging_dir={tmp_path / 'staged'}")
    pool = ("apache_beam.runners.worker.worker_pool_main", f"--service_port={ports[1]}", f"--container_executable={boot}")
    with (
        service(*jobs, port=ports[0], log=tmp_path / "jobs.log") as job_server,
        service(*pool, port=ports[1], log=tmp_path / "pool.log", TFX_EDGE_TRACE=str(trace), TMPDIR=str(tmp_path)) as workers,
    ):
        arguments = PortableBeam(kind="flink", job_endpoint=job_server, worker_pool=workers).arguments("no-image")
        placed = [argument.replace(WHEEL, str(wheel)) for argument in arguments]  # an image has it elsewhere
        context = BaseBeamExecutor.Context(beam_pipeline_args=placed, tmp_dir=str(tmp_path / "tmp"), unique_id="1")
        inputs = {keys.EXAMPLES: [examples], keys.TRANSFORM_GRAPH: [graph]}
        Executor(context).Do(inputs, {keys.CALIBRATION_DATA: [output]}, {keys.CONFIG: UNIFORM.to_json()})
    copies = set(trace.read_text().splitlines())
    assert copies and all(Path(copy).match("worker-*/packages/tfx_edge/__init__.py") for copy in copies)
    assert files(output) == expected
