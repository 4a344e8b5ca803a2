"""`tfx-edge doctor`: what this machine can do, and what to mend."""

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import click

from tfx_edge.schemas import EdgeError


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: it is.
        state: ok; missing: something optional isn't there; wrong: it stops what it is for.
        text: what was found.
        fix: what to do; empty where nothing is to be done.
    """

    what: str
    state: Literal["ok", "missing", "wrong"]
    text: str
    fix: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
def doctor(as_json: bool) -> None:
    """Look at Python, TFX, Keras, LiteRT, the side environments and the container engine, and say what to mend.

    Exit status 0: nothing is wrong, though something optional may be missing; 1: something is.

    Example: tfx-edge doctor
    """
    findings = list(examine())
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    for finding in () if as_json else findings:
        click.echo(f"{finding.state:<8} {finding.what}: {finding.text}" + (f"; {finding.fix}" if finding.fix else ""))
    if any(finding.state == "wrong" for finding in findings):
        sys.exit(1)


def examine() -> Iterator[Finding]:
    """Looks at everything, without importing TensorFlow."""
    version = platform.python_version()
    fits = (3, 10) <= sys.version_info[:2] <= (3, 13)
    yield Finding("python", "ok" if fits else "wrong", version, "" if fits else "use Python 3.10 to 3.13")
    for look in (_litert, _tfx, _keras, _targets, _device, _containers, _kfp):
        yield look()


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _litert() -> Finding:
    try:
        from ai_edge_litert.interpreter import Interpreter  # noqa: F401 - whether it loads is the question
    except (ImportError, OSError) as error:
        return Finding("litert", "wrong", " ".join(str(error).split()), "pip install ai-edge-litert, or run on Linux with glibc")
    return Finding("litert", "ok", f"ai-edge-litert {_version('ai-edge-litert')}")


def _tfx() -> Finding:
    tfx, tensorflow = _version("tfx"), _version("tensorflow")
    if tfx is None:
        return Finding("tfx", "missing", "not installed: no pipelines here", "pip install 'tfx-edge[tfx]' from one of the locks")
    line = ".".join(tfx.split(".")[:2])
    wanted = {"1.16": "2.16", "1.21": "2.21"}.get(line)
    text = f"tfx {tfx}, tensorflow {tensorflow}"
    if wanted is None or not (tensorflow or "").startswith(f"{wanted}."):
        return Finding("tfx", "wrong", text, "use TFX 1.16 or 1.21 with the TensorFlow of its lock in requirements/")
    return Finding("tfx", "ok", text)


def _keras() -> Finding:
    if _version("tensorflow") is None:
        return Finding("keras", "ok", "not needed without TensorFlow")
    mode = os.environ.get("TF_USE_LEGACY_KERAS")
    if mode != "1":
        return Finding("keras", "wrong", f"TF_USE_LEGACY_KERAS is {mode!r}: Keras 3 is loaded", "export TF_USE_LEGACY_KERAS=1, or unset it")
    legacy = _version("tf-keras")
    if legacy is None:
        return Finding("keras", "wrong", "tf-keras isn't installed", "pip install tf-keras, of TensorFlow's version")
    return Finding("keras", "ok", f"tf-keras {legacy}")


def _targets() -> Finding:
    from tfx_edge.litert.targets.side import VARIABLE, find_python, version

    tools = {"tflite_micro": "tflite-micro", "ethosu": "ethos-u-vela"}
    found = {}
    for module, name in tools.items():
        python = find_python(module)
        found[name] = None if python is None else version(python, module)
    text = ", ".join(f"{name} {version or 'not installed'}" for name, version in found.items())
    fix = f"make setup, or install requirements/targets.txt elsewhere and name its Python in {VARIABLE}"
    return Finding("targets", "ok" if all(found.values()) else "missing", text, "" if all(found.values()) else fix)


def _device() -> Finding:
    from tfx_edge.cli.simulated_device import device_python

    try:
        return Finding("device", "ok", f"the client runs in {device_python()}")
    except EdgeError as error:
        return Finding("device", "missing", str(error))


def _containers() -> Finding:
    if importlib.util.find_spec("docker") is None:
        return Finding("containers", "missing", "no docker package", "pip install 'tfx-edge[kubeflow]' to run packages in containers")
    import docker
    from docker.errors import DockerException
    from requests import RequestException  # docker-py hands on a lost engine as one of these

    try:
        client = docker.from_env(timeout=5)
        try:
            return Finding("containers", "ok", f"engine {client.version().get('Version')} at {client.api.base_url}")
        finally:
            client.close()
    except (DockerException, RequestException) as error:
        fix = "start Docker or Podman and set DOCKER_HOST; `run-package --engine host` needs none"
        return Finding("containers", "missing", f"no engine answers ({type(error).__name__})", fix)


def _kfp() -> Finding:
    version = _version("kfp")
    if version is None:
        return Finding("kubeflow", "missing", "kfp isn't installed: no schedules", "pip install 'tfx-edge[kubeflow]'")
    return Finding("kubeflow", "ok", f"kfp {version}")
