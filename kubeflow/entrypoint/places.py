"""Where the launcher puts files: `minio://bucket/key` is at `/minio/bucket/key`, and so on.

Source: LocalPathForURI in backend/src/v2/component/launcher_v2.go of kubeflow/pipelines.
"""

import os
from collections.abc import Mapping

_MOUNTS = {"minio://": "/minio/", "s3://": "/s3/", "gs://": "/gcs/"}
MOUNT_ROOT = "TFX_EDGE_MOUNT_ROOT"
"""Environment variable: a folder that holds `minio`, `s3` and `gcs` where no container has them at `/`."""


def local_path(uri: str, environment: Mapping[str, str] = os.environ) -> str:
    """The path of a URI's file or folder; a URI of another kind, such as a path, stays.

    >>> from tfx_edge.kubeflow.entrypoint.places import local_path
    >>> local_path("s3://bucket/run/model", {"TFX_EDGE_MOUNT_ROOT": "/tmp/run"})
    '/tmp/run/s3/bucket/run/model'
    """
    for scheme, folder in _MOUNTS.items():
        if uri.startswith(scheme):
            return environment.get(MOUNT_ROOT, "").rstrip("/") + folder + uri.removeprefix(scheme)
    return uri
