"""What a package asks of Kubernetes, as far as one machine can give it: volumes and secrets.

Node selectors, tolerations, resources and pull policies place a pod; they change nothing in a local run.
Source: kubernetes_platform/proto/kubernetes_executor_config.proto of kubeflow/pipelines, in its JSON form.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class _Platform(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class PvcMount(_Platform):
    """A volume claim in a container."""

    mount_path: str
    sub_path: str = ""
    constant: str = ""
    pvc_name_parameter: dict[str, Any] = Field(default_factory=dict)

    @property
    def claim(self) -> str:
        """The claim's name; empty where it is known at run time only."""
        constant = self.pvc_name_parameter.get("runtimeValue", {}).get("constant", "")
        return self.constant or (constant if isinstance(constant, str) else "")


class KeyToEnv(_Platform):
    """One key of a secret or config map under the name of a variable."""

    env_var: str


class FromKeys(_Platform):
    """Variables from a secret or a config map."""

    secret_name: str = ""
    config_map_name: str = ""
    key_to_env: tuple[KeyToEnv, ...] = ()
    optional: bool = False

    @property
    def source(self) -> str:
        """Where a cluster takes them from."""
        return self.secret_name or self.config_map_name


class Mounted(_Platform):
    """A secret or a config map as files."""

    secret_name: str = ""
    config_map_name: str = ""
    mount_path: str
    optional: bool = False

    @property
    def source(self) -> str:
        """Where a cluster takes them from."""
        return self.secret_name or self.config_map_name


class ExecutorPlatform(_Platform):
    """What one executor asks for."""

    pvc_mount: tuple[PvcMount, ...] = ()
    secret_as_env: tuple[FromKeys, ...] = ()
    config_map_as_env: tuple[FromKeys, ...] = ()
    secret_as_volume: tuple[Mounted, ...] = ()
    config_map_as_volume: tuple[Mounted, ...] = ()

    @property
    def variables(self) -> tuple[FromKeys, ...]:
        """All that come from secrets and config maps."""
        return self.secret_as_env + self.config_map_as_env

    @property
    def files(self) -> tuple[Mounted, ...]:
        """All secrets and config maps that are mounted."""
        return self.secret_as_volume + self.config_map_as_volume


class _Deployment(_Platform):
    executors: dict[str, ExecutorPlatform] = Field(default_factory=dict)


class _Kubernetes(_Platform):
    deployment_spec: _Deployment = _Deployment()


class _Platforms(_Platform):
    kubernetes: _Kubernetes = _Kubernetes()


class PlatformSpec(_Platform):
    """A package's second document."""

    platforms: _Platforms = _Platforms()

    @property
    def executors(self) -> dict[str, ExecutorPlatform]:
        """What each executor, by label, asks of Kubernetes."""
        return self.platforms.kubernetes.deployment_spec.executors


NOTHING = ExecutorPlatform()
