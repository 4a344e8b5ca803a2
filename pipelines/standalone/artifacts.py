"""Files of a user's own as TFX's artifacts: folders of links."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import apache_beam as beam
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.artifact import Artifact

from tfx_edge.pipelines.beam_args import IN_MEMORY
from tfx_edge.schemas import EdgeError

Made = TypeVar("Made", bound=Artifact)


def context(folder: Path) -> BaseBeamExecutor.Context:
    """What an executor runs with: Beam in this process, and a temporary folder."""
    # With pipeline arguments instead, TFX would spend seconds on packaging itself.
    return BaseBeamExecutor.Context(make_beam_pipeline_fn=lambda: beam.Pipeline(argv=list(IN_MEMORY)), tmp_dir=str(folder), unique_id="1")


def artifact(kind: type[Made], folder: Path) -> Made:
    """An artifact in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    made: Made = kind()
    made.uri = str(folder)
    return made


def examples_artifact(splits: Mapping[str, Sequence[Path]], folder: Path) -> standard_artifacts.Examples:
    """TFRecord files of tf.Examples as an Examples artifact.

    Args:
        splits: files by the split's name; those that end with .gz are gzipped.
        folder: of the artifact.

    Raises:
        EdgeError: a split has no files, or one isn't there.
    """
    for name, files in splits.items():
        if not files:
            raise EdgeError(f"no files of {name} examples; name TFRecord files of tf.Examples")
        (folder / f"Split-{name}").mkdir(parents=True)
        for i, file in enumerate(files):
            if not file.is_file():
                raise EdgeError(f"{file}: no such file; name TFRecord files of tf.Examples")
            suffix = ".gz" if file.suffix == ".gz" else ""
            (folder / f"Split-{name}" / f"data-{i:05d}-of-{len(files):05d}{suffix}").symlink_to(file.resolve())
    made = artifact(standard_artifacts.Examples, folder)
    made.split_names = artifact_utils.encode_split_names(list(splits))
    return made


def schema_artifact(schema: schema_pb2.Schema, folder: Path) -> standard_artifacts.Schema:
    """A schema as SchemaGen writes it."""
    made = artifact(standard_artifacts.Schema, folder)
    (folder / "schema.pbtxt").write_text(text_format.MessageToString(schema))
    return made


def saved_model_artifact(path: Path, folder: Path) -> standard_artifacts.Model:
    """A SavedModel as a Trainer's Model artifact.

    Args:
        path: of the SavedModel, or of an artifact that has one in Format-Serving.
        folder: of the artifact.

    Raises:
        EdgeError: there is no SavedModel.
    """
    found = next((place for place in (path, path / "Format-Serving") if (place / "saved_model.pb").is_file()), None)
    if found is None:
        raise EdgeError(f"{path}: no saved_model.pb in it; name a folder that tf.saved_model.save or model.save wrote")
    made = artifact(standard_artifacts.Model, folder)
    (folder / "Format-Serving").symlink_to(found.resolve())
    return made


def edge_model_artifact(path: Path, folder: Path) -> standard_artifacts.Model:
    """A flatbuffer, or a bundle as TFLiteExporter writes it, as an edge Model artifact.

    Raises:
        EdgeError: there is no such file.
    """
    if path.is_dir():
        if not (path / "Format-Serving" / "tflite").is_file():
            raise EdgeError(f"{path}: no Format-Serving/tflite in it; name a .tflite file, or a folder as TFLiteExporter writes it")
        made = artifact(standard_artifacts.Model, folder)
        for part in path.iterdir():
            (folder / part.name).symlink_to(part.resolve())
        return made
    if not path.is_file():
        raise EdgeError(f"{path}: no such file; name a .tflite file")
    made = artifact(standard_artifacts.Model, folder)
    (folder / "Format-Serving").mkdir()
    (folder / "Format-Serving" / "tflite").symlink_to(path.resolve())
    return made
