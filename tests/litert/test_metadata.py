"""TFLite Metadata in a flatbuffer: as the format has it, true to what was told, and in nobody's way."""

import os
import random
import struct
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.tools import flatbuffer_utils
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from target_models import ask_tflm, classifier, deep_classifier, features, float_classifier, needs_tools
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import inspect
from tfx_edge.litert.metadata import read_metadata, write_metadata
from tfx_edge.litert.metadata.schema import MODEL_METADATA
from tfx_edge.litert.metadata.tables import MAX_TABLES, from_bytes
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.targets import check
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.model_metadata import AssociatedFile, ModelMetadata, Normalization, TensorMetadata
from tfx_edge.schemas.target import Target

LABELS = AssociatedFile(name="labels.txt", kind="axis_labels", description="A label a line.", text="a\nb\nc\nd\n")
TOLD = ModelMetadata(
    name="Digits",
    description="Handwritten digits, für Ziffern",
    version="v3",
    author="A. Ünal",
    license="Apache-2.0",
    inputs=(
        TensorMetadata(
            name="x",
            description="pixels",
            content="image",
            color_space="grayscale",
            normalization=Normalization(mean=(127.5,), std=(64.25,)),
            min=(-1.0,),
            max=(255.0,),
        ),
    ),
    outputs=(TensorMetadata(name="y", content="feature", files=(LABELS,)),),
)
MEDIAPIPE = Path(__file__).parents[1] / "data" / "mediapipe_metadata.bin"  # written by mediapipe 1.2.3's generated classes

texts = st.text(st.characters(codec="utf-8"), max_size=6)
floats = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=3).map(tuple)
some_floats = floats.filter(len)
files = st.builds(
    AssociatedFile,
    name=st.uuids().map(str),
    kind=st.sampled_from(["unknown", "descriptions", "axis_labels", "value_labels", "score_calibration", "vocabulary"]),
    description=texts,
    text=st.none() | texts,
)
normalizations = st.none() | st.builds(Normalization, mean=some_floats, std=some_floats)


def tensors(*names):
    colors = st.sampled_from([("image", "rgb"), ("image", "grayscale"), ("image", "unknown"), ("feature", "unknown"), (None, "unknown")])
    one = [
        st.tuples(colors, st.builds(
            TensorMetadata, name=st.just(n), description=texts, normalization=normalizations, min=floats, max=floats,
            files=st.lists(files, max_size=2).map(tuple),
        )).map(lambda pair: pair[1].model_copy(update={"content": pair[0][0], "color_space": pair[0][1]}))
        for n in names
    ]  # fmt: skip
    return st.tuples(*one)


@given(st.builds(
    ModelMetadata, name=texts, description=texts, version=texts, author=texts, license=texts, inputs=tensors("x"), outputs=tensors("y"),
    files=st.lists(files, max_size=2).map(tuple),
))  # fmt: skip
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_written_is_read_back(told):
    assert read_metadata(write_metadata(_SMALL, told)) == told


_SMALL = classifier()


def test_mediapipes_metadata_is_read_without_what_is_not_told_here():
    model = _with_buffer(_SMALL, MEDIAPIPE.read_bytes())
    assert read_metadata(model) == ModelMetadata(
        name="Digits",
        description="Handwritten digits, 8 x 8",
        version="v3",
        author="A. Ü",
        license="Apache-2.0",
        inputs=(
            TensorMetadata(
                name="image",
                description="8 x 8 pixels",
                content="image",
                color_space="grayscale",
                normalization=Normalization(mean=(127.5,), std=(64.25,)),
                min=(-1.0,),
                max=(255.0,),
            ),
            TensorMetadata(name="boxes", content="bounding_box"),
            TensorMetadata(name="audio"),
        ),
        outputs=(
            TensorMetadata(
                name="digit",
                content="feature",
                files=(AssociatedFile(name="labels.txt", kind="axis_labels"), AssociatedFile(name="words.txt", kind="vocabulary")),
            ),
        ),
        files=(AssociatedFile(name="readme.txt", kind="descriptions", description="what it is"),),
    )


def test_every_field_stands_where_the_schema_has_it():
    content = _content(write_metadata(_SMALL, TOLD))
    assert content[4:8] == b"M001"
    root = _Plain(content, _uint(content, 0))
    assert [root.text(i) for i in (0, 1, 2, 4, 5, 7)] == [
        "Digits", "Handwritten digits, für Ziffern", "v3", "A. Ünal", "Apache-2.0", "1.0.0",
    ]  # fmt: skip
    [graph] = root.tables(3)
    [x], [y] = graph.tables(2), graph.tables(3)
    assert (x.text(0), x.text(1), y.text(0)) == ("x", "pixels", "y")
    image = x.table(3)
    assert (image.byte(0), image.table(1).byte(0)) == (2, 2)  # ImageProperties, GRAYSCALE
    assert y.table(3).byte(0) == 1  # FeatureProperties
    [unit] = x.tables(4)
    assert (unit.byte(0), unit.table(1).floats(0), unit.table(1).floats(1)) == (1, [127.5], [64.25])
    assert (x.table(5).floats(0), x.table(5).floats(1)) == ([255.0], [-1.0])  # max comes first
    [labels] = y.tables(6)
    assert (labels.text(0), labels.text(1), labels.byte(2)) == ("labels.txt", "A label a line.", 2)  # TENSOR_AXIS_LABELS


def test_only_a_vocabulary_needs_a_newer_parser():
    vocabulary = AssociatedFile(name="words.txt", kind="vocabulary", text="a\n")
    content = _content(write_metadata(_SMALL, TOLD.model_copy(update={"files": (vocabulary,)})))
    assert _Plain(content, _uint(content, 0)).text(7) == "1.0.1"


def test_tensors_are_told_of_in_the_graphs_order_by_the_signatures_names():
    a, b = Tensor("a", "float32", (1, 2)), Tensor("b", "float32", (1, 2))
    total, product = Tensor("sum", "float32", (1, 2)), Tensor("product", "float32", (1, 2))
    model = pack([Graph("serving_default", (b, a), (product, total), (Op("ADD", (a, b), (total,)), Op("MUL", (a, b), (product,))))])
    told = ModelMetadata(
        inputs=(TensorMetadata(name="a", description="first"), TensorMetadata(name="b", description="second")),
        outputs=(TensorMetadata(name="sum", description="a + b"),),
    )
    got = read_metadata(write_metadata(model, told))
    assert got is not None
    assert [(t.name, t.description) for t in got.inputs] == [("b", "second"), ("a", "first")]
    assert [(t.name, t.description) for t in got.outputs] == [("product", ""), ("sum", "a + b")]


def test_a_signature_of_a_later_graph_is_told_of_at_that_graphs_place():
    x, y, z = (Tensor(n, "float32", (1, 2)) for n in "xyz")
    inner = Graph(None, (x,), (y,), (Op("ADD", (x, x), (y,)),))
    model = pack([inner, Graph("serving_default", (x,), (z,), (Op("MUL", (x, x), (z,)),))])
    written = write_metadata(model, ModelMetadata(outputs=(TensorMetadata(name="z", description="square"),)))
    content = _content(written)
    assert [len(graph.tables(3)) for graph in _Plain(content, _uint(content, 0)).tables(3)] == [0, 1]
    got = read_metadata(written)
    assert got is not None and got.outputs[0].description == "square"


def test_the_rest_of_the_file_stays_and_its_constants_lie_at_multiples_of_16(image_model):
    written = write_metadata(image_model, ModelMetadata(name="Digits"))
    before, after = inspect.parse(image_model), inspect.parse(written)
    assert {m.name for m in after.metadata} == {m.name for m in before.metadata} | {b"TFLITE_METADATA"}
    assert b"CONVERSION_METADATA" in {m.name for m in before.metadata}
    for old, new in zip(before.buffers, after.buffers[:-1], strict=True):
        assert (old.data is None) == (new.data is None)
        assert old.data is None or bytes(old.data) == bytes(new.data)
    assert inspect.minimum_runtime(written) == inspect.minimum_runtime(image_model)
    assert inspect.operators(written) == inspect.operators(image_model)
    assert Runner(written).signature == Runner(image_model).signature
    assert _places(written) and all(place % 16 == 0 for place in _places(written))
    assert any(place % 16 for place in _places(bytes(flatbuffer_utils.convert_object_to_bytearray(before))))  # as it would be otherwise


def test_constants_that_lay_behind_the_flatbuffer_lie_inside_afterwards():
    parsed = inspect.parse(_SMALL)
    weights = max(parsed.buffers, key=lambda buffer: 0 if buffer.data is None else len(buffer.data))
    behind = bytes(weights.data)
    weights.data, weights.offset, weights.size = None, 1 << 20, len(behind)  # a place that takes as many bytes as the real one
    start = len(flatbuffer_utils.convert_object_to_bytearray(parsed))
    weights.offset = start
    model = bytes(flatbuffer_utils.convert_object_to_bytearray(parsed)) + behind
    assert len(model) == start + len(behind)
    written = write_metadata(model, TOLD)
    assert all(buffer.offset == 0 for buffer in flatbuffer_utils.convert_bytearray_to_object(written).buffers)
    np.testing.assert_array_equal(Runner(written)(features())["y"], Runner(_SMALL)(features())["y"])


def test_the_archive_behind_the_flatbuffer_has_the_files_as_they_are_and_no_date():
    with zipfile.ZipFile(BytesIO(write_metadata(_SMALL, TOLD))) as archive:
        [entry] = archive.infolist()
        assert (entry.filename, entry.compress_type, entry.date_time[:3]) == ("labels.txt", zipfile.ZIP_STORED, (1980, 1, 1))
        assert archive.read(entry) == b"a\nb\nc\nd\n" and archive.testzip() is None
    assert not zipfile.is_zipfile(BytesIO(write_metadata(_SMALL, ModelMetadata(name="no files"))))


def test_writing_again_replaces_and_gives_the_same_bytes():
    once = write_metadata(_SMALL, TOLD)
    assert write_metadata(once, TOLD) == once
    other = write_metadata(once, ModelMetadata(name="other", inputs=(TensorMetadata(name="x"),), outputs=(TensorMetadata(name="y"),)))
    got = read_metadata(other)
    assert got is not None and got.name == "other" and not zipfile.is_zipfile(BytesIO(other))


def test_another_process_with_another_hash_seed_writes_the_same_bytes(tmp_path):
    (tmp_path / "model").write_bytes(_SMALL)
    (tmp_path / "told").write_text(TOLD.to_json())
    code = """
import sys
from pathlib import Path
from tfx_edge.litert.metadata import write_metadata
from tfx_edge.schemas.model_metadata import ModelMetadata
sys.stdout.buffer.write(write_metadata(Path("model").read_bytes(), ModelMetadata.from_json(Path("told").read_text())))
assert "tensorflow" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONHASHSEED": "7"}, capture_output=True, check=True
    )
    assert done.stdout == write_metadata(_SMALL, TOLD)


@pytest.mark.parametrize("model", [classifier(), deep_classifier(), float_classifier(None)], ids=["int8", "deep", "float"])
def test_litert_and_tensorflows_interpreter_compute_what_they_did(model):
    import tensorflow as tf

    written = write_metadata(model, TOLD)
    np.testing.assert_array_equal(Runner(written)(features())["y"], Runner(model)(features())["y"])

    def by_tensorflow(content):
        interpreter = tf.lite.Interpreter(model_content=content)
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()[0]
        interpreter.set_tensor(details["index"], np.full(details["shape"], 3, details["dtype"]))
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    np.testing.assert_array_equal(by_tensorflow(written), by_tensorflow(model))


def test_the_quantizer_takes_the_file():
    import numpy.typing  # noqa: F401 - which litert_quantizer needs on NumPy 1
    from litert_quantizer import quantizer, recipe

    model = float_classifier(1)
    results = []
    for content in (model, write_metadata(model, TOLD)):
        tool = quantizer.Quantizer(content)
        tool.load_quantization_recipe(recipe.dynamic_wi8_afp32())
        results.append(bytes(tool.quantize().quantized_model))
    np.testing.assert_array_equal(*(Runner(result)(features())["y"] for result in results))


@needs_tools
def test_tensorflow_lite_micro_runs_it_in_as_much_memory_and_vela_measures_what_it_did(tmp_path):
    model, written = classifier(), write_metadata(classifier(), TOLD)
    assert ask_tflm(tmp_path, written, 20_000) == ask_tflm(tmp_path, model, 20_000) is not None
    before, after = (check(m, Target(profile="ethos-u55"), {}) for m in (model, written))
    assert (after.reasons, after.measurements) == ((), before.measurements)


def test_of_damaged_metadata_all_is_read_or_refused_in_one_line():
    model, generator, outcomes = write_metadata(_SMALL, TOLD), random.Random(0), {"read": 0, "refused": 0}
    whole = _content(model)
    assert model.count(whole) == 1

    def mutated():
        damaged = bytearray(whole)
        for _ in range(generator.choice((1, 1, 4, 32))):
            damaged[generator.randrange(len(damaged))] = generator.choice((0, 1, 127, 255, generator.randrange(256)))
        return bytes(damaged)

    damaged = [model.replace(whole, mutated()) for _ in range(1000)]
    damaged += [_with_buffer(_SMALL, whole[:size]) for size in generator.sample(range(1, len(whole)), 50)]
    for content in damaged:
        try:
            read_metadata(content)
            outcomes["read"] += 1
        except EdgeError as error:
            assert "\n" not in str(error) and "damaged TFLite Metadata" in str(error)
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 100, outcomes


def test_a_damaged_archive_leaves_the_text_of_its_files_unknown():
    written = bytearray(write_metadata(_SMALL, TOLD))
    written[written.rindex(b"a\nb\nc\nd\n")] ^= 1
    got = read_metadata(bytes(written))
    assert got is not None and [file.text for file in got.outputs[0].files] == [None]


def test_metadata_that_names_one_table_too_many_times_is_refused():
    from flatbuffers import Builder

    builder = Builder()

    def repeated(table):
        builder.StartVector(4, 1000, 4)
        for _ in range(1000):
            builder.PrependUOffsetTRelative(table)
        return builder.EndVector()

    def holding(field, vector):
        builder.StartObject(8)
        builder.PrependUOffsetTRelativeSlot(field, vector, 0)
        return builder.EndObject()

    builder.StartObject(0)
    tensor = builder.EndObject()
    graph = holding(2, repeated(tensor))
    builder.Finish(holding(3, repeated(graph)), b"M001")
    with pytest.raises(ValueError, match=f"more than {MAX_TABLES} tables"):
        from_bytes(MODEL_METADATA, bytes(builder.Output()))


def test_without_metadata_there_is_none_and_of_another_format_it_is_refused():
    assert read_metadata(_SMALL) is None
    with pytest.raises(EdgeError, match="damaged TFLite Metadata: identifier b'X001' instead of b'M001'"):
        read_metadata(_with_buffer(_SMALL, MEDIAPIPE.read_bytes().replace(b"M001", b"X001")))


def test_what_the_model_has_not_and_files_of_one_name_are_refused():
    with pytest.raises(EdgeError, match="metadata of input 'z', which the model has not; it has 'x'; name one of these"):
        write_metadata(_SMALL, ModelMetadata(inputs=(TensorMetadata(name="z"),)))
    other = AssociatedFile(name="labels.txt", text="e\n")
    with pytest.raises(EdgeError, match="two associated files are called 'labels.txt' and differ"):
        write_metadata(_SMALL, TOLD.model_copy(update={"files": (other,)}))


class _Plain:
    """A table of a flatbuffer, read by what the format's description says: a place holds the distance to the list of fields' distances."""

    def __init__(self, content, position):
        self.content, self.position = content, position

    def place(self, field):
        fields = self.position - struct.unpack_from("<i", self.content, self.position)[0]
        size = struct.unpack_from("<H", self.content, fields)[0]
        distance = struct.unpack_from("<H", self.content, fields + 4 + 2 * field)[0] if 4 + 2 * field < size else 0
        return self.position + distance if distance else None

    def target(self, field):
        place = self.place(field)
        return None if place is None else place + _uint(self.content, place)

    def text(self, field):
        start = self.target(field)
        return self.content[start + 4 : start + 4 + _uint(self.content, start)].decode()

    def byte(self, field):
        place = self.place(field)
        return 0 if place is None else self.content[place]

    def table(self, field):
        return _Plain(self.content, self.target(field))

    def floats(self, field):
        start = self.target(field)
        return list(struct.unpack_from(f"<{_uint(self.content, start)}f", self.content, start + 4))

    def tables(self, field):
        start = self.target(field)
        places = [] if start is None else [start + 4 + 4 * i for i in range(_uint(self.content, start))]
        return [_Plain(self.content, place + _uint(self.content, place)) for place in places]


def _uint(content, place):
    return struct.unpack_from("<I", content, place)[0]


def _content(model):
    parsed = inspect.parse(model)
    [entry] = [m for m in parsed.metadata if m.name == b"TFLITE_METADATA"]
    return bytes(parsed.buffers[entry.buffer].data)


def _with_buffer(model, content):
    parsed = inspect.parse(write_metadata(model, ModelMetadata()))
    [entry] = [m for m in parsed.metadata if m.name == b"TFLITE_METADATA"]
    parsed.buffers[entry.buffer].data = np.frombuffer(content, np.uint8)
    return bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))


def _places(model):
    """Where each constant begins in the file."""
    root = _Plain(model, _uint(model, 0))
    starts = [buffer.target(0) for buffer in root.tables(4)]  # Model.buffers, Buffer.data
    return [start + 4 for start in starts if start is not None and _uint(model, start)]
