"""Tasks as containers, on any engine that speaks Docker's API: Docker, podman."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfx_edge.kubeflow.local_run.engines import Step, StepError
from tfx_edge.kubeflow.local_run.places import MOUNTS
from tfx_edge.kubeflow.local_run.platform import ExecutorPlatform
from tfx_edge.schemas import EdgeError

_GRACE_S = 5  # between SIGTERM and SIGKILL
_CONTACT_S = 30
_SHM = "1g"  # the usual 64 MB is too little for data loaders


class DockerEngine:
    """A container a step, made, watched and removed here.

    Args:
        root: The folder that holds `minio/`, and `volumes/<claim>` and `secrets/<name>` for what a package mounts.
        user: `UID[:GID]` in the container; None: who calls, so that files are his.
        volumes: More binds, `HOST:CONTAINER[:ro]`.

    Raises:
        EdgeError: no engine answers, or a volume isn't of that form.
    """

    prefix = ""

    def __init__(self, root: Path, user: str | None = None, volumes: tuple[str, ...] = ()) -> None:
        import docker

        self.root = root
        self.volumes = [_bind(volume) for volume in volumes]
        try:
            self.client = docker.from_env(timeout=_CONTACT_S)
            info = self.client.info()
            self.client.api.timeout = None  # it would bound how long a task may be silent
        except (docker.errors.DockerException, OSError) as error:
            host = os.environ.get("DOCKER_HOST", "the default socket (DOCKER_HOST isn't set)")
            raise EdgeError(
                f"--engine docker: no engine answers at {host}; start Docker or podman's service and set DOCKER_HOST, or use --engine host"
            ) from error
        # In a rootless engine the container's root is who started the engine.
        rootless = any("rootless" in option for option in info.get("SecurityOptions") or ())
        self.user = user or ("0:0" if rootless else f"{os.getuid()}:{os.getgid()}")
        self._owned = self.user.split(":")[0] == str(os.getuid()) or rootless

    def check(self, images: dict[str, str], platforms: dict[str, ExecutorPlatform]) -> list[str]:
        """Every image is here or can be had; every secret that is mounted lies in `secrets/`."""
        import docker

        for image in sorted(set(images.values())):
            try:
                self.client.images.get(image)
            except docker.errors.ImageNotFound:
                try:
                    self.client.images.pull(*_repository(image))
                except docker.errors.APIError as error:
                    reason = str(error.explanation or error).splitlines()[0]
                    raise EdgeError(f"image {image}: neither here nor to be pulled ({reason:.200})") from None
        for task, platform in platforms.items():
            for files in platform.files:
                if not files.optional and not self._secret(files.source).is_dir():
                    raise EdgeError(f"task {task}: {files.source} is to be mounted; put its files into {self._secret(files.source)}")
            for mount in platform.pvc_mount:
                if not mount.claim:
                    raise EdgeError(f"task {task}: a volume claim whose name is known at run time only can't be mounted here")
        return []

    async def run(self, step: Step) -> int:
        """Runs the step's container; the exit status is the container's own, asked before it is removed."""
        if not self._owned:
            step.writable.chmod(0o777)  # another user must be able to write outputs
        with _told("the container can't be started"):
            container = await self._started(step)
        try:
            with _told("the container can't be watched"):
                return await asyncio.to_thread(_watch, container, step.log)
        except asyncio.CancelledError:
            with contextlib.suppress(StepError), _told("the container can't be stopped"):
                container.stop(timeout=_GRACE_S)
            raise
        finally:
            with contextlib.suppress(StepError), _told("the container can't be removed"):
                container.remove(force=True)

    async def _started(self, step: Step) -> Any:
        """A container; one that is being made while the run is cancelled is awaited and removed, for nobody else knows it."""
        starting = asyncio.ensure_future(asyncio.to_thread(self._start, step))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            (await starting).remove(force=True)
            raise

    def _start(self, step: Step) -> Any:
        import docker

        container = self.client.containers.create(
            step.image,
            entrypoint=[step.command[0]],
            command=list(step.command[1:]),
            environment={"HOME": "/tmp", **step.env},  # noqa: S108 - the one folder that any user can write
            mounts=self._mounts(step.platform),
            user=self.user,
            shm_size=_SHM,
            labels={"tfx-edge.task": step.task},
        )
        try:
            container.start()
        except docker.errors.APIError:
            container.remove(force=True)
            raise
        return container

    def _mounts(self, platform: ExecutorPlatform) -> list[Any]:
        folders = [(self.root / mount, f"/{mount}", False) for mount in MOUNTS.values()]
        folders += [
            (self.root / "volumes" / mount.claim / mount.sub_path.lstrip("/"), mount.mount_path, False) for mount in platform.pvc_mount
        ]
        for folder, _, _ in folders:
            folder.mkdir(parents=True, exist_ok=True)
            if not self._owned:
                folder.chmod(0o777)
        secrets = [(self._secret(files.source), files.mount_path, True) for files in platform.files]
        folders += [secret for secret in secrets if secret[0].is_dir()]
        return [_mount(*folder) for folder in [*folders, *self.volumes]]

    def _secret(self, name: str) -> Path:
        return self.root / "secrets" / name


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """An engine's refusal, or its end, as a `StepError`."""
    import docker
    from urllib3.exceptions import HTTPError

    try:
        yield
    except docker.errors.APIError as error:
        raise StepError(f"{what}: {str(error.explanation or error).splitlines()[0]}") from None
    except (OSError, HTTPError):
        raise StepError(f"{what}: the engine no longer answers") from None


def _mount(source: Path, target: str, read_only: bool) -> Any:
    from docker.types import Mount

    return Mount(target, str(source), type="bind", read_only=read_only)


def _bind(volume: str) -> tuple[Path, str, bool]:
    source, _, rest = volume.partition(":")
    target, _, mode = rest.partition(":")
    if not target.startswith("/") or mode not in {"", "ro", "rw"}:
        raise EdgeError(f"--volume {volume}: expected HOST:CONTAINER or HOST:CONTAINER:ro, CONTAINER an absolute path")
    if not Path(source).exists():
        raise EdgeError(f"--volume {volume}: {source} doesn't exist")
    return Path(source).resolve(), target, mode == "ro"


def _repository(image: str) -> tuple[str, str | None]:
    """Without a tag Docker would pull all tags."""
    name, _, tag = image.rpartition(":")
    return (image, None) if "@" in image else ((name, tag) if name and "/" not in tag else (image, "latest"))


def _watch(container: Any, log: Path) -> int:
    with log.open("ab") as file:
        for chunk in container.logs(stream=True, follow=True):
            file.write(chunk)
            file.flush()
    return int(container.wait()["StatusCode"])
