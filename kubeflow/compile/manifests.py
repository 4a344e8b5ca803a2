"""A package as the Kubernetes resources Pipeline and PipelineVersion, for clusters that take pipelines from Git.

Source: pipelines.kubeflow.org/v2beta1, manifests/kustomize/base/crds of kubeflow/pipelines. Fields of single releases stay out: a
cluster without them refuses the resource. `versionName` is one; KFP then takes the resource's own name.
"""

import re
from typing import Any

from tfx_edge.schemas import EdgeError

_API = "pipelines.kubeflow.org/v2beta1"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LONGEST = 253


def manifests(documents: list[dict[str, Any]], version: str) -> list[dict[str, Any]]:
    """Wraps a package. The version has no other name than its resource: YAML of Go takes a commit like 1234e56 for a number.

    Args:
        documents: of the package.
        version: its name, the git commit for one.

    Raises:
        EdgeError: names that Kubernetes doesn't take.
    """
    spec, *platforms = documents
    pipeline = spec["pipelineInfo"]["name"]
    expected = "lower-case letters, digits, dashes and dots"
    if not _NAME.fullmatch(pipeline):
        raise EdgeError(f"pipeline {pipeline!r}: Kubernetes wants {expected} in a resource's name; name the pipeline so")
    if not _NAME.fullmatch(version):
        raise EdgeError(f"--version {version!r}: expected {expected}, such as the git commit")
    name = f"{pipeline}-{version}"
    if len(name) > _LONGEST:
        raise EdgeError(f"--version {version!r}: with the pipeline's name it has {len(name)} characters; expected {_LONGEST} at most")
    body: dict[str, Any] = {"pipelineName": pipeline, "pipelineSpec": spec}
    if platforms:
        body["platformSpec"] = platforms[0]
    return [
        {"apiVersion": _API, "kind": "Pipeline", "metadata": {"name": pipeline}, "spec": {"displayName": pipeline}},
        {"apiVersion": _API, "kind": "PipelineVersion", "metadata": {"name": name}, "spec": body},
    ]
