"""How a pipeline runs on Kubeflow: one file an environment, such as staging or production."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from tfx_edge.schemas.beam import Beam
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.secrets import refuse_secret, refuse_secrets_within

ParameterType = Literal["STRING", "NUMBER_INTEGER", "NUMBER_DOUBLE", "LIST", "STRUCT"]

_MEMORY = r"^\d+(\.\d+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$"
_UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

Memory = Annotated[str, Field(pattern=_MEMORY)]
ResourceName = Annotated[str, Field(pattern=rf"^{_LABEL}(\.{_LABEL})*$", max_length=253)]
"""What Kubernetes takes as a resource's name (RFC 1123)."""
Variable = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
MountPath = Annotated[str, Field(pattern="^/[^:]*$")]


def gigabytes(memory: str) -> float:
    """A Kubernetes quantity in gigabytes of 10^9 bytes, as KFP's PipelineSpec counts.

    >>> from tfx_edge.schemas.kubeflow import gigabytes
    >>> gigabytes("500M"), gigabytes("1Gi")
    (0.5, 1.073741824)
    """
    number, unit = re.fullmatch(r"([\d.]+)(\D*)", memory).groups()  # type: ignore[union-attr]  # the fields' pattern saw to it
    return float(number) * _UNITS[unit] / 1e9


class Resources(Config):
    """What a component's container asks for, and what it may use at most."""

    cpu_request: float | None = Field(default=None, gt=0, description="Cores that are kept free for it.")
    cpu_limit: float | None = Field(default=None, gt=0, description="Cores that it may use.")
    memory_request: Memory | None = Field(default=None, description="Memory that is kept free for it, such as 4Gi.")
    memory_limit: Memory | None = Field(default=None, description="Memory at which it is killed, such as 8Gi.")

    def check(self) -> None:
        if self.cpu_request and self.cpu_limit and self.cpu_request > self.cpu_limit:
            raise ValueError(f"cpu_request {self.cpu_request} is above cpu_limit {self.cpu_limit}; no node could start it")
        if self.memory_request and self.memory_limit and gigabytes(self.memory_request) > gigabytes(self.memory_limit):
            raise ValueError(f"memory_request {self.memory_request} is above memory_limit {self.memory_limit}; no node could start it")


class Accelerator(Config):
    """A device that a component's container gets."""

    type: str = Field(min_length=1, description="Its resource name on the cluster, such as nvidia.com/gpu.")
    count: int = Field(default=1, ge=1, description="How many.")


class SecretEnv(Config):
    """A key of a Kubernetes secret as an environment variable. The value is never in the package."""

    secret: ResourceName = Field(description="Name of the secret.")
    key: str = Field(pattern=r"^[-._a-zA-Z0-9]+$", description="Its key.")
    env: Variable = Field(description="Name of the variable.")


class SecretVolume(Config):
    """A Kubernetes secret as files, one a key."""

    secret: ResourceName = Field(description="Name of the secret.")
    path: MountPath = Field(description="Folder in the container.")


class Volume(Config):
    """A persistent volume in the container."""

    claim: ResourceName = Field(description="Name of the PersistentVolumeClaim.")
    path: MountPath = Field(description="Folder in the container.")


class Toleration(Config):
    """Lets the pod run on nodes with a taint; as Kubernetes' toleration."""

    key: str = Field(default="", description="The taint's key; empty with operator Exists: every taint.")
    operator: Literal["Equal", "Exists"] = Field(default="Equal", description="Equal compares value, Exists doesn't.")
    value: str = Field(default="", description="The taint's value.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(default="", description="Empty: every effect.")
    seconds: int | None = Field(default=None, ge=0, description="NoExecute: how long the pod stays.")

    def check(self) -> None:
        if self.operator == "Exists" and self.value:
            raise ValueError(f"toleration {self.key!r} with operator Exists and value {self.value!r}; leave the value out")
        if self.operator == "Equal" and not self.key:
            raise ValueError("toleration without key; name one, or set operator Exists")
        if self.seconds is not None and self.effect != "NoExecute":
            raise ValueError(f"toleration {self.key!r} with seconds {self.seconds}; they go with effect NoExecute")


# What stands for no bound on attempts: 30 days. Without a value KFP takes 0 s, which is no further attempt at all.
UNBOUNDED_S = 30 * 24 * 3600


class Retry(Config):
    """When a component's container fails it is started anew."""

    count: int = Field(ge=0, le=100, description="How many times at most; 0: never.")
    backoff_s: int = Field(default=30, ge=0, description="Seconds before the first time.")
    factor: int = Field(default=2, ge=1, description="Each wait is this many times the one before.")
    within_s: int | None = Field(
        default=None,
        ge=1,
        le=UNBOUNDED_S,
        description="Seconds after the first attempt's start: then no further one starts, and one that runs is ended. None: no bound.",
    )


class ComponentConfig(Config):
    """How components' containers run. What a component leaves out it takes from the defaults."""

    image: str | None = Field(default=None, min_length=1, description="Another image than the pipeline's.")
    resources: Resources | None = Field(default=None, description="CPU and memory.")
    accelerator: Accelerator | None = Field(default=None, description="For example GPUs.")
    env: dict[Variable, str] = Field(default={}, description="Environment variables; secrets go into secret_env.")
    secret_env: tuple[SecretEnv, ...] = Field(default=(), description="Keys of secrets as environment variables.")
    secret_volumes: tuple[SecretVolume, ...] = Field(default=(), description="Secrets as files.")
    volumes: tuple[Volume, ...] = Field(default=(), description="Persistent volumes.")
    node_selector: dict[str, str] = Field(default={}, description="Labels that the node must have.")
    tolerations: tuple[Toleration, ...] = Field(default=(), description="Taints that the node may have.")
    retry: Retry | None = Field(default=None, description="None: as in the defaults; there: never.")
    cache: bool | None = Field(
        default=None, description="Whether an earlier run's results on the same inputs are taken; None: as the pipeline."
    )
    beam: Beam | None = Field(default=None, description="Where Beam pipelines run; None: the pipeline's own Beam arguments.")

    def check(self) -> None:
        for name, value in self.env.items():  # a field's own validator would have the value in its error
            refuse_secret(name, value, "secret_env")
        twice = _first_twice([*self.env, *(secret.env for secret in self.secret_env)])
        if twice:
            raise ValueError(f"variable {twice!r} is there twice in env and secret_env; keep one")
        paths = [*(volume.path for volume in self.volumes), *(volume.path for volume in self.secret_volumes)]
        twice = _first_twice([path.rstrip("/") or "/" for path in paths])
        if twice:
            raise ValueError(f"path {twice!r} is there twice in volumes and secret_volumes; give each its own")

    def over(self, defaults: "ComponentConfig") -> "ComponentConfig":
        """This config, with what it leaves out taken from the defaults; variables and labels of both, its own winning."""
        merged: dict[str, Any] = {}
        for name in type(self).model_fields:
            mine, theirs = getattr(self, name), getattr(defaults, name)
            merged[name] = {**theirs, **mine} if isinstance(mine, dict) else theirs if mine in (None, ()) else mine
        return ComponentConfig(**merged)


def _first_twice(names: Sequence[str]) -> str | None:
    return next((name for place, name in enumerate(names) if name in names[:place]), None)


class Parameter(Config):
    """An input of the pipeline: what a run or a schedule may set."""

    type: ParameterType = Field(default="STRING", description="As KFP names it; TFX hands on no BOOLEAN, take a number.")
    default: StrictInt | StrictFloat | StrictStr | list[Any] | dict[str, Any] | None = Field(
        default=None, description="None: each run has to give a value."
    )
    description: str = Field(default="", description="Shown in Kubeflow's form.")

    def check(self) -> None:
        kinds: dict[str, tuple[type, ...]] = {
            "STRING": (str,), "NUMBER_INTEGER": (int,), "NUMBER_DOUBLE": (int, float),
            "LIST": (list,), "STRUCT": (dict,),
        }  # fmt: skip
        wrong = not isinstance(self.default, kinds[self.type]) or isinstance(self.default, bool)
        if self.default is not None and wrong:
            raise ValueError(f"default {self.default!r} with type {self.type}; give a value of that type")


class KubeflowConfig(Config):
    """`kubeflow/environments/<name>.yaml`: all that differs between the clusters that one pipeline runs on.

    >>> from tfx_edge.schemas import ComponentConfig, KubeflowConfig, Resources
    >>> config = KubeflowConfig(
    ...     defaults=ComponentConfig(env={"A": "1"}, cache=False),
    ...     components={"Trainer": ComponentConfig(resources=Resources(memory_limit="8Gi"), env={"B": "2"})},
    ... )
    >>> config.component("Trainer").env, config.component("Trainer").cache
    ({'A': '1', 'B': '2'}, False)
    """

    image: str | None = Field(default=None, min_length=1, description="The image of every component; --image overrides it.")
    require_digest: bool = Field(
        default=False, description="Refuses an image without a digest: its content may change under a name, and cached results with it."
    )
    pipeline_root: str | None = Field(
        default=None, pattern="^(gs|s3|minio)://", description="Where artifacts go; None: as the cluster is set up."
    )
    arguments: dict[str, Any] = Field(default={}, description="Of the function that makes the pipeline, by name; --arg overrides them.")
    parameters: dict[str, Parameter] = Field(default={}, description="The pipeline's inputs by name: types, defaults and descriptions.")
    defaults: ComponentConfig = Field(default=ComponentConfig(), description="Of every component.")
    components: dict[str, ComponentConfig] = Field(default={}, description="Single components by id.")

    def component(self, component_id: str) -> ComponentConfig:
        """What holds for one component."""
        own = self.components.get(component_id)
        return self.defaults if own is None else own.over(self.defaults)

    def check(self) -> None:
        both = sorted(set(self.arguments) & set(self.parameters))
        if both:
            raise ValueError(f"{both[0]!r} is in arguments and in parameters; keep one: a fixed value, or one that each run may set")
        defaults = {name: parameter.default for name, parameter in self.parameters.items()}
        refuse_secrets_within("arguments", self.arguments, "a component's secret_env")
        refuse_secrets_within("parameters", defaults, "a component's secret_env")
        for name in self.components:
            try:
                self.component(name)
            except ConfigError as error:
                raise ValueError(f"components.{name} with defaults: {error}") from None
