"""`ModelMetadata` as the tables of the format, and back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfx_edge.schemas.model_metadata import (
    AssociatedFile,
    ColorSpace,
    ContentKind,
    FileKind,
    ModelMetadata,
    Normalization,
    TensorMetadata,
)

Values = dict[str, Any]

# In the order of the schema's enums and unions; a union counts from 1.
_FILE_KINDS: tuple[FileKind, ...] = (
    "unknown",
    "descriptions",
    "axis_labels",
    "value_labels",
    "score_calibration",
    "vocabulary",
)
_CONTENTS: tuple[ContentKind, ...] = ("feature", "image", "bounding_box")
_COLORS: tuple[ColorSpace, ...] = ("unknown", "rgb", "grayscale")
_NORMALIZATION = 1

_MIN_PARSER, _VOCABULARY_PARSER = "1.0.0", "1.0.1"  # the schema versions that brought what is written here


def to_tables(metadata: ModelMetadata, graph: int = 0) -> Values:
    """The root table of some metadata, whose inputs and outputs are those of the flatbuffer's graph of this number."""
    tensors: Values = {
        "input_tensor_metadata": [_from_tensor(t) for t in metadata.inputs],
        "output_tensor_metadata": [_from_tensor(t) for t in metadata.outputs],
    }
    has_vocabulary = any(file.kind == "vocabulary" for file in all_files(metadata))
    return {
        "name": metadata.name,
        "description": metadata.description,
        "version": metadata.version,
        "subgraph_metadata": [*({} for _ in range(graph)), tensors],
        "author": metadata.author,
        "license": metadata.license,
        "associated_files": [_from_file(file) for file in metadata.files],
        "min_parser_version": _VOCABULARY_PARSER if has_vocabulary else _MIN_PARSER,
    }


def from_tables(root: Mapping[str, Any], graph: int, contents: Mapping[str, bytes]) -> ModelMetadata:
    """The metadata of a root table.

    Args:
        root: as `tables.from_bytes` gives it.
        graph: number of the graph whose inputs and outputs are told.
        contents: of the files behind the flatbuffer, by name.
    """
    graphs = root.get("subgraph_metadata", [])
    tensors = graphs[graph] if graph < len(graphs) else {}
    return ModelMetadata(
        name=root.get("name", ""),
        description=root.get("description", ""),
        version=root.get("version", ""),
        author=root.get("author", ""),
        license=root.get("license", ""),
        inputs=tuple(_to_tensor(t, contents) for t in tensors.get("input_tensor_metadata", ())),
        outputs=tuple(_to_tensor(t, contents) for t in tensors.get("output_tensor_metadata", ())),
        files=_to_files(root, contents),
    )


def all_files(metadata: ModelMetadata) -> Iterable[AssociatedFile]:
    """The model's files and those of its tensors."""
    yield from metadata.files
    for tensor in (*metadata.inputs, *metadata.outputs):
        yield from tensor.files


def _from_tensor(tensor: TensorMetadata) -> Values:
    values: Values = {
        "name": tensor.name,
        "description": tensor.description,
        "associated_files": [_from_file(file) for file in tensor.files],
    }
    if tensor.content is not None:
        color = {"color_space": _COLORS.index(tensor.color_space)} if tensor.content == "image" else {}
        values["content"] = {"content_properties": (1 + _CONTENTS.index(tensor.content), color)}
    if tensor.normalization is not None:
        options = {"mean": tensor.normalization.mean, "std": tensor.normalization.std}
        values["process_units"] = [{"options": (_NORMALIZATION, options)}]
    if tensor.min or tensor.max:
        values["stats"] = {"min": tensor.min, "max": tensor.max}
    return values


def _to_tensor(values: Mapping[str, Any], contents: Mapping[str, bytes]) -> TensorMetadata:
    number, properties = values.get("content", {}).get("content_properties", (0, {}))
    units = [unit["options"][1] for unit in values.get("process_units", ()) if "options" in unit]
    normalizations = [Normalization(mean=_floats(unit["mean"]), std=_floats(unit["std"])) for unit in units if {"mean", "std"} <= set(unit)]
    stats = values.get("stats", {})
    return TensorMetadata(
        name=values.get("name", ""),
        description=values.get("description", ""),
        content=_CONTENTS[number - 1] if number else None,
        color_space=_named(_COLORS, properties.get("color_space", 0)),
        normalization=normalizations[0] if normalizations else None,
        min=_floats(stats.get("min", ())),
        max=_floats(stats.get("max", ())),
        files=_to_files(values, contents),
    )


def _from_file(file: AssociatedFile) -> Values:
    return {"name": file.name, "description": file.description, "type": _FILE_KINDS.index(file.kind)}


def _to_files(values: Mapping[str, Any], contents: Mapping[str, bytes]) -> tuple[AssociatedFile, ...]:
    return tuple(
        AssociatedFile(
            name=file["name"],
            kind=_named(_FILE_KINDS, file.get("type", 0)),
            description=file.get("description", ""),
            text=_text(contents.get(file["name"])),
        )
        for file in values.get("associated_files", ())
        if file.get("name")
    )


def _named(names: Sequence[Any], number: int) -> Any:
    """The name of an enum's value; the first, `unknown`, for one of a later schema."""
    return names[number] if 0 <= number < len(names) else names[0]


def _floats(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None
