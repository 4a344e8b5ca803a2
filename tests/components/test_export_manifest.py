"""What the manifest and the flatbuffer's metadata say, and where the exporter knows it from."""

import shutil
import subprocess
from pathlib import Path

import pytest
from target_models import classifier, float_classifier
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.proto.orchestration import pipeline_pb2
from tfx.types.standard_artifacts import Examples, Model
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.components.lineage import folder_digest, run_info, toolchain
from tfx_edge.components.tflite_exporter.manifest import labelled_output, model_metadata
from tfx_edge.litert.metadata import read_metadata, write_metadata
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, ExportConfig, Signature, TensorRange, TensorRanges, TensorSpec
from tfx_edge.schemas.lineage import RunInfo
from tfx_edge.schemas.model_metadata import Normalization
from tfx_edge.schemas.preprocessing import Preprocessing, TransformedFeature

LABELS = ("zero", "one", "two", "three")
CONFIG = ExportConfig(name="Digits", description="of hands", version="3", author="the team", license="MIT", labels=LABELS)


def artifact(kind: type, number: int) -> Model:
    made = kind()
    made.id = number
    return made


def test_the_source_digest_is_sha256sums_and_depends_on_content_and_names_alone(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    for name, content in {"saved_model.pb": b"graph", "variables/b c": b"1", "variables/a": b"2", "variables-x": b"", "é/é": b"3"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    command = "find * -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"
    printed = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout
    digest = folder_digest(str(folder))
    assert digest == printed.split()[0]
    shutil.copytree(folder, tmp_path / "another" / "place")
    assert folder_digest(str(tmp_path / "another" / "place")) == digest
    (folder / "variables" / "a").rename(folder / "variables" / "d")
    assert folder_digest(str(folder)) != digest
    (folder / "variables" / "d").rename(folder / "variables" / "a")
    (folder / "variables" / "a").write_bytes(b"4")
    assert folder_digest(str(folder)) != digest
    with pytest.raises(EdgeError, match="no files at .*; expected a SavedModel's folder"):
        folder_digest(str(tmp_path / "nothing"))


def test_the_run_is_told_as_the_orchestrator_tells_it() -> None:
    context = BaseExecutor.Context(
        unique_id="7",
        pipeline_info=pipeline_pb2.PipelineInfo(id="digits"),
        pipeline_node=pipeline_pb2.PipelineNode(node_info=pipeline_pb2.NodeInfo(id="TFLiteExporter.int8")),
        pipeline_run_id="run-12",
    )
    inputs = {"transform_graph": [artifact(Model, 4)], "float_model": [artifact(Model, 9)], "unregistered": [Examples()]}
    assert run_info(context, inputs) == RunInfo(
        pipeline="digits",
        run_id="run-12",
        component="TFLiteExporter.int8",
        execution_id="7",
        input_artifacts={"float_model": (9,), "transform_graph": (4,)},
    )


@pytest.mark.parametrize("context", [None, BaseExecutor.Context()])
def test_without_an_orchestrator_nothing_is_made_up(context: BaseExecutor.Context | None) -> None:
    assert run_info(context, {"float_model": [Model()]}) == RunInfo()


def test_the_software_is_what_is_installed() -> None:
    import tensorflow as tf
    from ai_edge_litert import __version__ as litert
    from tfx.version import __version__ as tfx

    told = toolchain()
    assert told.tfx_line in ("1.16", "1.21") and tfx.startswith(f"{told.tfx_line}.")
    assert (told.tfx, told.tensorflow, told.litert) == (tfx, tf.__version__, litert)


def test_labels_are_of_the_output_that_has_as_many_positions() -> None:
    def outputs(**shapes: tuple[int | None, ...]) -> Signature:
        return Signature(inputs=(), outputs=tuple(TensorSpec(name=n, shape=s, dtype="float32") for n, s in shapes.items()))

    assert labelled_output(CONFIG, outputs(digit=(None, 4), weight=(None, 1), embedding=(None, 64))) == "digit"
    assert labelled_output(CONFIG, outputs(mask=(None, 8, 8, 4))) == "mask"
    assert labelled_output(ExportConfig(), outputs(digit=(None, 10))) is None
    with pytest.raises(EdgeError, match=r"got 4 labels, the model's outputs are 'digit' \[None, 10\]; give as many labels as its last"):
        labelled_output(CONFIG, outputs(digit=(None, 10)))
    with pytest.raises(EdgeError, match=r"'a' \[None, 4\], 'b' \[None, 4\]; give no labels, since"):
        labelled_output(CONFIG, outputs(a=(None, 4), b=(None, 4)))
    with pytest.raises(EdgeError, match="the model's outputs are 'n'"):  # the batch is no axis of classes
        labelled_output(CONFIG, outputs(n=(4,)))


def test_the_flatbuffer_says_what_the_config_the_ranges_and_transform_say() -> None:
    model = float_classifier()
    ranges = TensorRanges(ranges={"x_tensor": TensorRange(min=-2.5, max=3), "logits_tensor": TensorRange(min=0, max=9)}, examples=5)
    scaled = Normalization(mean=(4.0,), std=(0.5,))
    transform = Preprocessing(
        features=(TransformedFeature(name="x", sources=("raw",), normalization=scaled),), raw_features=(), vocabularies={}
    )
    told = model_metadata(CONFIG, model, ranges, transform)
    assert (told.name, told.description, told.version, told.author, told.license) == ("Digits", "of hands", "3", "the team", "MIT")
    [x], [y] = told.inputs, told.outputs
    assert (x.name, x.content, x.normalization, x.min, x.max) == ("x", "feature", scaled, (-2.5,), (3.0,))
    assert (y.name, y.content, y.min, y.files[0].kind, y.files[0].text) == ("y", "feature", (), "axis_labels", "zero\none\ntwo\nthree\n")
    assert read_metadata(write_metadata(model, told)) == told


def test_what_transform_does_inside_the_flatbuffer_is_no_task_for_the_app() -> None:
    feature = TransformedFeature(name="x", sources=("x",), normalization=Normalization(mean=(4.0,), std=(0.5,)))
    transform = Preprocessing(features=(feature,), raw_features=(), vocabularies={})
    raw = model_metadata(ExportConfig(features="raw"), classifier(), None, transform)
    assert raw.inputs[0].normalization is None
    unchanged = feature.model_copy(update={"normalization": Normalization(mean=(0.0,), std=(1.0,))})
    as_it_is = model_metadata(ExportConfig(), classifier(), None, transform.model_copy(update={"features": (unchanged,)}))
    assert as_it_is.inputs[0].normalization is None


@pytest.mark.parametrize(
    ("shape", "content", "color"),
    [
        ((1, 8, 8, 1), "image", "grayscale"),
        ((1, 8, 8, 3), "image", "rgb"),
        ((1, 8, 8, 2), "feature", "unknown"),
        ((1, 3), "feature", "unknown"),
    ],
)
def test_an_input_of_rank_4_with_one_or_three_channels_is_an_image(shape: tuple[int, ...], content: str, color: str) -> None:
    x, y = Tensor("x", "float32", shape), Tensor("y", "float32", shape)
    told = model_metadata(ExportConfig(), pack([Graph("serving_default", (x,), (y,), (Op("ADD", (x, x), (y,)),))]))
    assert (told.inputs[0].content, told.inputs[0].color_space) == (content, color)
    assert (told.outputs[0].content, told.outputs[0].color_space) == ("feature", "unknown")


def test_metadata_leaves_what_the_model_is_to_litert() -> None:
    model = classifier()
    assert Runner(write_metadata(model, model_metadata(CONFIG, model))).signature == Runner(model).signature
