"""`kubeflow/schedules.yaml`: which package runs when on a Kubeflow Pipelines server."""

import re
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import AwareDatetime, Field, field_validator

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.secrets import refuse_secrets_within

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Window(Config):
    """When a schedule is alive at all."""

    start: AwareDatetime | None = Field(default=None, description="First moment a run may start, with time zone: 2027-01-01T00:00:00Z.")
    end: AwareDatetime | None = Field(default=None, description="Last moment a run may start, with time zone.")

    def check(self) -> None:
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError(f"end {self.end.isoformat()} isn't after start {self.start.isoformat()}; give a later end")


class Schedule(Config):
    """One recurring run: a package, when it starts and with what."""

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$", description="Its name on the server: small letters, digits, . _ -")
    package: str = Field(min_length=1, description="The package that tfx-edge compile wrote; relative to this file.")
    pipeline: str | None = Field(
        default=None, min_length=1, max_length=100, description="The pipeline on the server; None: the name in the package."
    )
    description: str = Field(default="", max_length=1000, description="One sentence for the server's UI.")
    cron: str | None = Field(default=None, description="Five fields: minute, hour, day of month, month, day of week: 0 2 * * *")
    interval: str | None = Field(
        default=None, pattern=r"^[1-9][0-9]*[smhd]$", description="Time from start to start instead of cron, at least 60s: 90m, 6h, 1d."
    )
    concurrency: int = Field(default=1, ge=1, le=10, description="How many of its runs may run at once.")
    catch_up: bool = Field(default=False, description="Run every start that was missed, one by one; else only the last of them.")
    window: Window = Field(default=Window(), description="When it is alive at all.")
    parameters: dict[str, Any] = Field(default_factory=dict, description="Values of the package's inputs, by name.")
    service_account: str | None = Field(default=None, description="Kubernetes service account of the runs; None: the server's default.")
    experiment: str = Field(
        default="Default", min_length=1, description="The experiment that its runs are listed in; made if it is missing."
    )
    pipeline_root: str | None = Field(
        default=None, pattern=r"^(minio|s3|gs)://", description="Where artifacts go: minio://, s3:// or gs://; None: the server's default."
    )
    enabled: bool = Field(default=True, description="False: kept on the server, but paused.")

    @property
    def seconds(self) -> int | None:
        """The interval in seconds; None with cron."""
        return None if self.interval is None else int(self.interval[:-1]) * _SECONDS[self.interval[-1]]

    def check(self) -> None:
        if (self.cron is None) == (self.interval is None):
            told = "both" if self.cron is not None else "neither"
            raise ValueError(f"{self.name}: got {told} of cron and interval; give exactly one, for example cron: '0 2 * * *'")
        if self.seconds is not None and self.seconds < 60:
            raise ValueError(f"{self.name}: interval {self.interval} is below a minute; the controller looks only every 10 s or so")
        refuse_secrets_within("parameters", self.parameters, "secret_env of the environment that the package is compiled with")


class Schedules(Config):
    """The whole file."""

    group: str = Field(
        default="default",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$",
        description="Whose schedules these are: --prune removes this group's only.",
    )
    timezone: str = Field(
        default="UTC",
        description="What CRON_SCHEDULE_TIMEZONE of the cluster's ml-pipeline-scheduledworkflow says; used to show times, it changes none.",
    )
    schedules: tuple[Schedule, ...] = Field(description="The recurring runs.")

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
            raise ValueError("expected a name of the IANA time zone database, for example Europe/Berlin") from None
        return name

    def check(self) -> None:
        names = [schedule.name for schedule in self.schedules]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"schedules: {', '.join(doubled)} stands there twice; names must differ")


def unquoted_star(text: str) -> bool:
    """Whether a cron in this YAML begins with a star and has no quotes: YAML takes it for an alias."""
    return re.search(r"^\s*-?\s*cron:\s*\*", text, re.MULTILINE) is not None
