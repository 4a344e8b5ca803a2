"""The record of a package's run without a cluster."""

from typing import Any, Literal

from pydantic import Field

from tfx_edge.schemas.config import Config

TaskState = Literal["PENDING", "RUNNING", "SUCCEEDED", "CACHED", "SKIPPED", "FAILED", "CANCELED"]
EngineName = Literal["docker", "host"]
RunState = Literal["RUNNING", "SUCCEEDED", "FAILED", "CANCELED"]


class RecordedArtifact(Config):
    """An artifact that a task put out."""

    number: int = Field(description="Its id, by which other tasks know it.")
    uri: str = Field(description="As a cluster has it.")
    path: str | None = Field(description="Where it lies on this machine; None: not below the root.")
    type: str = Field(description="The schema's title.")
    metadata: dict[str, Any] = Field(description="Properties; numbers are doubles, lists and objects are wrapped, as KFP keeps them.")


class TaskRecord(Config):
    """How one task went."""

    state: TaskState = Field(default="PENDING", description="KFP's states, and CACHED: an earlier run's outputs were taken.")
    reason: str = Field(default="", description="Why it failed or was skipped.")
    seconds: float | None = Field(default=None, description="From the driver to the outputs, with attempts and waits between them.")
    attempts: int = Field(default=0, description="How often the command was started.")
    exit_status: int | None = Field(default=None, description="Of the last attempt; 128 and more: a signal's.")
    log: str | None = Field(default=None, description="The last attempt's standard output and error.")
    parameters: dict[str, Any] = Field(default_factory=dict, description="Output parameters.")
    artifacts: dict[str, tuple[RecordedArtifact, ...]] = Field(default_factory=dict, description="Output artifacts by key.")


class PackageRun(Config):
    """`run.json`: one run of a package by `tfx-edge run-package`. Written whole after each change of a task's state."""

    pipeline: str = Field(description="The pipeline's name.")
    run_id: str = Field(description="The run's, part of its artifacts' addresses.")
    package: str = Field(description="The package's file.")
    package_sha256: str = Field(description="Of its bytes.")
    engine: EngineName = Field(description="What ran the tasks.")
    parameters: dict[str, Any] = Field(description="The pipeline's inputs, defaults included.")
    started: str = Field(description="ISO 8601, UTC.")
    seconds: float | None = Field(default=None, description="Of the whole run; None while it runs.")
    state: RunState = Field(default="RUNNING", description="FAILED: a task failed, and none can run any more; CANCELED: a signal came.")
    tasks: dict[str, TaskRecord] = Field(description="By name; a task inside a graph has the graph's name before it: graph/task.")
