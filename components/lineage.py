"""Where an edge model comes from: the source model's content, the run, the software."""

import hashlib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import tensorflow as tf
import tfx.version
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.dsl.io import fileio
from tfx.types.artifact import Artifact

import tfx_edge
from tfx_edge.components.documents import read_bytes
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.lineage import RunInfo, Toolchain


def folder_digest(folder: str) -> str:
    """The digest of a folder's content, wherever the folder lies: that of what `sha256sum` prints for its files, sorted by path.

    In a shell: `cd FOLDER; find * -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`.

    Raises:
        EdgeError: there are no files.
    """
    files = sorted(_files(folder), key=lambda file: file[0].encode())
    lines = [f"{hashlib.sha256(read_bytes(path)).hexdigest()}  {inside}\n" for inside, path in files]
    if not lines:
        raise EdgeError(f"no files at {folder}; expected a SavedModel's folder")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def run_info(context: BaseExecutor.Context | None, inputs: Mapping[str, Sequence[Artifact]]) -> RunInfo:
    """What the orchestrator tells of the run.

    Args:
        context: of the executor.
        inputs: its input artifacts by key.
    """
    node, pipeline = getattr(context, "pipeline_node", None), getattr(context, "pipeline_info", None)
    ids = {key: tuple(artifact.id for artifact in artifacts if artifact.id) for key, artifacts in sorted(inputs.items())}
    return RunInfo(
        pipeline=(pipeline.id if pipeline is not None else None) or None,
        run_id=getattr(context, "pipeline_run_id", None) or None,
        component=(node.node_info.id if node is not None else None) or None,
        execution_id=getattr(context, "_unique_id", None) or None,  # which Context keeps for its temporary folder and nothing else
        input_artifacts={key: found for key, found in ids.items() if found},
    )


def toolchain() -> Toolchain:
    """The software that runs here."""
    tfx_version = str(tfx.version.__version__)
    return Toolchain(
        tfx_line=".".join(tfx_version.split(".")[:2]),
        tfx=tfx_version,
        tensorflow=tf.__version__,
        litert=version("ai-edge-litert"),
        tfx_edge=tfx_edge.__version__,
    )


def _files(folder: str) -> Iterator[tuple[str, str]]:
    """Path inside the folder and whole path of every file."""
    for here, _, names in fileio.walk(folder):
        for name in names:
            path = posixpath.join(_text(here), _text(name))
            yield posixpath.relpath(path, folder), path


def _text(path: Any) -> str:
    return path.decode() if isinstance(path, bytes) else str(path)
