"""Reads a package's file, with KFP's own PipelineSpec as the judge of its form."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from tfx_edge.kubeflow.local_run.platform import ExecutorPlatform, PlatformSpec
from tfx_edge.kubeflow.local_run.spec import Pipeline
from tfx_edge.schemas import EdgeError

SCHEMA_VERSION = "2.1.0"


def read_package(path: Path) -> tuple[Pipeline, dict[str, ExecutorPlatform]]:
    """The pipeline, and what each executor, by label, asks of Kubernetes.

    Raises:
        EdgeError: the file isn't a package that KFP takes.
    """
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    document, *others = _documents(path)
    if "pipelineSpec" in document:
        raise EdgeError(f"{path}: a PipelineJob, as Vertex AI takes it; compile with --target kfp")
    if document.get("kind") in ("Pipeline", "PipelineVersion"):
        raise EdgeError(f"{path}: a manifest for Kubernetes ({document['kind']}); compile without --manifest and give that package")
    try:
        # The older line's kfp doesn't know the newer fields; what a run reads is checked below.
        spec = json_format.ParseDict(document, pipeline_spec_pb2.PipelineSpec(), ignore_unknown_fields=True)
        if spec.schema_version != SCHEMA_VERSION:
            version = spec.schema_version or "none, so it may have been cut off"
            raise EdgeError(f"{path}: schema version {version}; KFP takes {SCHEMA_VERSION} alone; compile the pipeline again")
        pipeline = Pipeline.model_validate(json_format.MessageToDict(spec))
        executors = {label: asks for other in others for label, asks in PlatformSpec.model_validate(other).executors.items()}
    except (json_format.ParseError, ValidationError) as error:
        raise EdgeError(f"{path}: not a package of schema {SCHEMA_VERSION} ({_in_one_line(error)}); compile the pipeline again") from None
    return pipeline, executors


def _documents(path: Path) -> list[dict[str, Any]]:
    try:
        documents = [document for document in yaml.safe_load_all(path.read_text()) if document is not None]
    except OSError as error:
        raise EdgeError(f"{path}: can't be read ({error.strerror}); give a package that tfx-edge compile wrote") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise EdgeError(f"{path}: isn't YAML ({_in_one_line(error)}); give a package that tfx-edge compile wrote") from None
    if not documents or not all(isinstance(document, dict) for document in documents):
        raise EdgeError(f"{path}: no pipeline in it; give a package that tfx-edge compile wrote")
    return documents


def _in_one_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())[:300]
