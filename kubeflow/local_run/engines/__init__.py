"""What runs a task's command: processes of this machine, or containers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tfx_edge.kubeflow.local_run.platform import ExecutorPlatform


@dataclass(frozen=True)
class Step:
    """One attempt of one task.

    Args:
        task: The task's name, for messages.
        image: The container image.
        command: Program and arguments, placeholders filled.
        env: Variables beside those of the engine.
        platform: Volumes and secrets.
        log: The file that takes standard output and error.
        writable: The folder for outputs; exists.
    """

    task: str
    image: str
    command: tuple[str, ...]
    env: dict[str, str]
    platform: ExecutorPlatform
    log: Path
    writable: Path


class StepError(Exception):
    """A task's command couldn't be started."""


class Engine(Protocol):
    """Runs steps. Cancelling `run` ends the step and all its children before it returns."""

    prefix: str
    """What stands before /minio in a task's paths."""

    def check(self, images: dict[str, str], platforms: dict[str, ExecutorPlatform]) -> list[str]:
        """Looks before the run at what every task needs.

        Args:
            images: Image by task.
            platforms: What each task asks of Kubernetes.

        Returns:
            Warnings, a line each.

        Raises:
            EdgeError: the engine isn't there, or can't give what a task needs.
        """

    async def run(self, step: Step) -> int:
        """Runs to the end and gives the exit status.

        Raises:
            StepError: the command couldn't be started.
        """
