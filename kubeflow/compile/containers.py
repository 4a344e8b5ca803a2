"""What the environment says about a component's container: one part stands in the PipelineSpec, one in the platform's document.

Sources: PipelineContainerSpec in api/v2alpha1/pipeline_spec.proto, KubernetesExecutorConfig in
kubernetes_platform/proto/kubernetes_executor_config.proto, both of kubeflow/pipelines. Resources are in the fields that every KFP 2
reads: cores and gigabytes as numbers.
"""

from typing import Any

from tfx_edge.schemas import ComponentConfig, Resources
from tfx_edge.schemas.kubeflow import UNBOUNDED_S, gigabytes
from tfx_edge.schemas.provenance import IMAGE_VARIABLE

INPUTS_SPEC = "--json_serialized_inputs_spec_args"
"""The option of TFX's containers whose value has the parameters' types; Beam's arguments stand behind it."""


def apply_container(container: dict[str, Any], config: ComponentConfig) -> None:
    """Puts resources and environment variables into a PipelineContainerSpec; what the pipeline's own code asked for stays where the
    environment says nothing. A component learns its image, which it can't ask for.
    """
    resources = {**container.get("resources", {}), **_resources(config)}
    if resources:
        container["resources"] = resources
    variables = {IMAGE_VARIABLE: container["image"], **config.env} if of_tfx(container) else config.env
    if variables:
        container["env"] = [{"name": name, "value": value} for name, value in sorted(variables.items())]


def of_tfx(container: dict[str, Any]) -> bool:
    """Whether it runs an executor of TFX's kind, and not a command of the user's own."""
    return INPUTS_SPEC in container.get("args", ())


def parted(container: dict[str, Any], config: ComponentConfig) -> tuple[list[str], list[str]]:
    """The arguments of a container of TFX's, and Beam's, which stand behind them: the environment's, or the pipeline's own."""
    arguments = container["args"]
    first = arguments.index(INPUTS_SPEC) + 2
    return arguments[:first], list(config.beam.arguments(container["image"])) if config.beam else arguments[first:]


def kubernetes(config: ComponentConfig) -> dict[str, Any]:
    """The KubernetesExecutorConfig, in its JSON form; empty where nothing is asked for."""
    secrets: dict[str, list[dict[str, str]]] = {}
    for secret in config.secret_env:
        secrets.setdefault(secret.secret, []).append({"secretKey": secret.key, "envVar": secret.env})
    parts: dict[str, Any] = {
        "secretAsEnv": [{"secretName": name, "keyToEnv": keys} for name, keys in secrets.items()],
        "secretAsVolume": [{"secretName": volume.secret, "mountPath": volume.path} for volume in config.secret_volumes],
        "pvcMount": [{"constant": volume.claim, "mountPath": volume.path} for volume in config.volumes],
        "nodeSelector": {"labels": config.node_selector} if config.node_selector else {},
        "tolerations": [
            {
                key: value
                for key, value in {
                    "key": toleration.key,
                    "operator": toleration.operator,
                    "value": toleration.value,
                    "effect": toleration.effect,
                    "tolerationSeconds": None if toleration.seconds is None else str(toleration.seconds),  # an int64 is text in JSON
                }.items()
                if value
            }
            for toleration in config.tolerations
        ],
    }
    return {name: part for name, part in parts.items() if part}


def apply_task(task: dict[str, Any], config: ComponentConfig, *, cached: bool | None = None) -> None:
    """Puts retry and caching into a PipelineTaskSpec. `cached` overrides what config and pipeline say."""
    if config.retry is not None and config.retry.count:
        task["retryPolicy"] = {
            "maxRetryCount": config.retry.count,
            "backoffDuration": f"{config.retry.backoff_s}s",
            "backoffFactor": config.retry.factor,
            # Not a bound on a wait: Argo counts it from the first attempt's start, and KFP takes 0 where it's absent.
            "backoffMaxDuration": f"{config.retry.within_s or UNBOUNDED_S}s",
        }
    wanted = config.cache if cached is None else cached
    if wanted is not None:
        task["cachingOptions"] = {"enableCache": True} if wanted else {}


def _resources(config: ComponentConfig) -> dict[str, Any]:
    asked = config.resources or Resources()
    values: dict[str, Any] = {
        "cpuRequest": asked.cpu_request,
        "cpuLimit": asked.cpu_limit,
        "memoryRequest": asked.memory_request and gigabytes(asked.memory_request),
        "memoryLimit": asked.memory_limit and gigabytes(asked.memory_limit),
    }
    if config.accelerator is not None:
        values["accelerator"] = {"type": config.accelerator.type, "count": str(config.accelerator.count)}
    return {name: value for name, value in values.items() if value is not None}
