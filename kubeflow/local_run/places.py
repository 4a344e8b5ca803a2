"""Where artifacts lie: what KFP's launcher calls minio://, s3:// and gs://, as folders below --root.

Source: LocalPathForURI in backend/src/v2/component/launcher_v2.go of kubeflow/pipelines.
"""

from dataclasses import dataclass
from pathlib import Path

MOUNTS = {"minio://": "minio", "s3://": "s3", "gs://": "gcs"}
PIPELINE_ROOT = "minio://mlpipeline/v2/artifacts"


@dataclass(frozen=True)
class Places:
    """Two views of the same files: this process's, and that of a task.

    Args:
        root: The folder that holds `minio/`, `s3/` and `gcs/`.
        prefix: What a task has before `/minio`: nothing in a container, the root on the host.
    """

    root: Path
    prefix: str

    def inside(self, uri: str) -> str | None:
        """The path of a URI for a task; None where KFP's launcher has no path for it."""
        for scheme, mount in MOUNTS.items():
            if uri.startswith(scheme):
                return f"{self.prefix}/{mount}/{uri.removeprefix(scheme)}"
        return None

    def here(self, uri: str) -> Path | None:
        """The path of a URI for this process; None where it is nowhere below the root."""
        for scheme, mount in MOUNTS.items():
            if uri.startswith(scheme):
                return self.root / mount / uri.removeprefix(scheme)
        return None
