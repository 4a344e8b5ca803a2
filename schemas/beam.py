"""Where the Beam pipelines of TFX's components and ours run."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from tfx_edge import __version__
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.secrets import refuse_secret

WHEEL = f"/opt/tfx-edge/dist/tfx_edge-{__version__}-py3-none-any.whl"
"""Where the image keeps the package's own wheel, for workers that run another image."""


class _Engine(Config):
    extra: tuple[str, ...] = Field(default=(), description="Further Beam arguments, such as --experiments=use_runner_v2.")

    def check(self) -> None:  # a field's own validator would have the value, maybe a secret, in its error
        for place, argument in enumerate(self.extra):
            name, _, value = argument.partition("=")
            if not name.startswith("--"):
                raise ValueError(f"extra[{place}] isn't a Beam argument; write --name=value, or --name")
            refuse_secret(name, value, "the component's secret_env")


class DirectBeam(_Engine):
    """In the component's own container."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the kinds apart

    kind: Literal["direct"] = "direct"
    workers: int = Field(default=1, ge=0, description="Worker processes or threads; 0: one a core.")
    mode: Literal["in_memory", "multi_threading", "multi_processing"] = Field(
        default="in_memory", description="Beam's direct_running_mode."
    )

    def arguments(self, image: str) -> tuple[str, ...]:
        """Beam's arguments; `image` is of the component."""
        # Named, or newer Beam may hand the pipeline to its Prism runner, a binary that it downloads. The image: without one named TFX
        # builds itself a source package for each component.
        return (
            "--runner=DirectRunner",
            f"--direct_running_mode={self.mode}",
            f"--direct_num_workers={self.workers}",
            "--sdk_container_image=none",
            *self.extra,
        )


class DataflowBeam(_Engine):
    """On Google Cloud Dataflow."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the kinds apart

    kind: Literal["dataflow"] = "dataflow"
    project: str = Field(min_length=1, description="Google Cloud project.")
    region: str = Field(min_length=1, description="Google Cloud region.")
    temp_location: str = Field(pattern="^gs://", description="Folder for staged and temporary files.")
    worker_image: str | None = Field(
        default=None,
        description="Image of the workers, with Beam's harness and this package; None: Beam's own, and the wheel staged.",
    )
    service_account: str | None = Field(default=None, description="E-mail of the workers' service account.")
    machine_type: str | None = Field(default=None, description="Of the workers.")
    max_workers: int | None = Field(default=None, ge=1, description="Workers at most.")

    def arguments(self, image: str) -> tuple[str, ...]:
        """Beam's arguments; `image` is of the component."""
        optional = {"service_account_email": self.service_account, "machine_type": self.machine_type, "max_num_workers": self.max_workers}
        return (
            "--runner=DataflowRunner",
            f"--project={self.project}",
            f"--region={self.region}",
            f"--temp_location={self.temp_location}",
            *(f"--{name}={value}" for name, value in optional.items() if value is not None),
            f"--sdk_container_image={self.worker_image}" if self.worker_image else f"--extra_package={WHEEL}",
            *self.extra,
        )


class PortableBeam(_Engine):
    """On Flink or Spark, through Beam's job server for it."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the kinds apart

    kind: Literal["flink", "spark"]
    job_endpoint: str = Field(pattern=r"^[\w.-]+:\d+$", description="host:port of Beam's Flink or Spark job server.")
    artifact_endpoint: str | None = Field(default=None, pattern=r"^[\w.-]+:\d+$", description="host:port of its artifact service.")
    worker_pool: str | None = Field(
        default=None,
        pattern=r"^[\w.-]+:\d+$",
        description="host:port of a worker pool beside each task manager; None: containers.",
    )
    worker_image: str | None = Field(default=None, description="Without worker_pool: image of the workers; None: the component's.")
    parallelism: int | None = Field(default=None, ge=1, description="Of the job; None: the engine's own.")

    def arguments(self, image: str) -> tuple[str, ...]:
        """Beam's arguments; `image` is of the component."""
        kind, config = ("EXTERNAL", self.worker_pool) if self.worker_pool else ("DOCKER", self.worker_image or image)
        return (
            "--runner=PortableRunner",
            f"--job_endpoint={self.job_endpoint}",
            *([f"--artifact_endpoint={self.artifact_endpoint}"] if self.artifact_endpoint else []),
            f"--environment_type={kind}",
            f"--environment_config={config}",
            *([f"--parallelism={self.parallelism}"] if self.parallelism else []),
            f"--extra_package={WHEEL}",
            *self.extra,
        )


Beam = Annotated[DirectBeam | DataflowBeam | PortableBeam, Field(discriminator="kind")]
