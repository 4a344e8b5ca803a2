"""Tasks as processes of this machine, in this Python environment."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from tfx_edge.kubeflow.local_run.engines import Step, StepError
from tfx_edge.kubeflow.local_run.platform import ExecutorPlatform
from tfx_edge.schemas import EdgeError

MOUNT_ROOT = "TFX_EDGE_MOUNT_ROOT"
_GRACE_S = 5.0  # between SIGTERM and SIGKILL


class HostEngine:
    """Runs each command in a process group of its own, with /minio and the others below the root.

    Args:
        root: The folder that holds `minio/`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.prefix = str(root)

    def check(self, images: dict[str, str], platforms: dict[str, ExecutorPlatform]) -> list[str]:
        """Volumes can't be mounted here: a warning each; secrets as files are refused."""
        warnings = []
        for task, platform in platforms.items():
            for files in platform.files:
                if not files.optional:
                    raise EdgeError(
                        f"task {task}: {files.source} is to be mounted at {files.mount_path}; engine host can't; use --engine docker"
                    )
            warnings += [
                f"task {task}: engine host doesn't mount volume claim {mount.claim} at {mount.mount_path}; the task sees this machine's own"
                for mount in platform.pvc_mount
            ]
        return warnings

    async def run(self, step: Step) -> int:
        """Runs the command; `python` is this interpreter. The status of what a signal ended is 128 and its number, as a container's."""
        program, *arguments = step.command
        program = sys.executable if program in {"python", "python3"} else program
        env = {**os.environ, **step.env, MOUNT_ROOT: str(self.root)}
        with step.log.open("ab") as log:
            try:
                process = await asyncio.create_subprocess_exec(
                    program, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True
                )
            except OSError as error:
                raise StepError(f"{program} can't be started: {error.strerror}") from None
        try:
            status = await process.wait()
        except asyncio.CancelledError:
            await _end(process)
            raise
        _signal(process.pid, signal.SIGKILL)  # what it left behind would outlive a container neither
        return status if status >= 0 else 128 - status


async def _end(process: asyncio.subprocess.Process) -> None:
    _signal(process.pid, signal.SIGTERM)
    try:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
    finally:  # also where somebody doesn't want to wait, and cancels again
        _signal(process.pid, signal.SIGKILL)
    await process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
