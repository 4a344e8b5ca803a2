"""A model as C++ source: compiled it is the flatbuffer again, aligned, and registers what the model needs."""

import io
import re
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from firmware import needs_compiler, run_firmware
from target_models import classifier, constant, float_ended_classifier, model, top_k
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.targets.micro_source import MicroSource, flatbuffer_alone, micro_source, suggested_arena
from tfx_edge.schemas import EdgeError

WRITE_ARRAY = """
#include <cstdint>
#include <cstdio>
int main() {
  std::fwrite(digits::kModel, 1, digits::kModelSize, stdout);
  return reinterpret_cast<std::uintptr_t>(digits::kModel) % 16 == 0 && sizeof(digits::kModel) == digits::kModelSize ? 0 : 1;
}
"""

# TensorFlow Lite Micro's headers come with no package. Of its resolver this has what a registration sees: a status for each method.
REGISTER = """
#include <cstdio>
enum Status { kOk, kError };
struct Resolver {
  int room;
  Status Add(const char* name) { std::printf("%s ", name); return room-- > 0 ? kOk : kError; }
METHODS
};
int main() {
  for (int room = 0; room <= int(digits::kOperatorCount); room++) {
    Resolver resolver{room};
    std::printf("%d\\n", digits::RegisterOps(resolver) == kOk);
  }
  return digits::kArenaSize == ARENA ? 0 : 1;
}
"""


def register(folder: Path, source: MicroSource, arena: int) -> list[list[str]]:
    """The methods that are called, and whether all succeed, by a resolver with room for none, for one, ... for all of them."""
    methods = sorted(set(re.findall(r"resolver\.(Add\w+)\(\)", source.header.decode())))
    written = "".join(f'  Status {method}() {{ return Add("{method}"); }}\n' for method in methods)
    main = REGISTER.replace("METHODS", written).replace("ARENA", str(arena))
    return [line.split() for line in run_firmware(folder, source, main).decode().splitlines()]


def with_files(flatbuffer: bytes, **files: str) -> bytes:
    """The model with a ZIP archive behind it."""
    whole = io.BytesIO(flatbuffer)
    whole.seek(0, io.SEEK_END)
    with zipfile.ZipFile(whole, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return whole.getvalue()


@needs_compiler
@pytest.mark.parametrize("make", [classifier, float_ended_classifier])
def test_the_compiled_array_is_the_flatbuffer_and_aligned(make, tmp_path: Path) -> None:
    assert run_firmware(tmp_path, micro_source(make(), "digits"), WRITE_ARRAY) == make()


@needs_compiler
@pytest.mark.parametrize("before", [1, 5])
def test_a_board_that_aligns_less_by_itself_gets_an_aligned_array(before: int, tmp_path: Path) -> None:
    # This machine's compiler aligns an array of 16 bytes and more anyway; where one of 5 lies depends on what is before it.
    header = b"#pragma once\nnamespace digits { constexpr unsigned kModelSize = 5; extern const unsigned char kModel[kModelSize]; }\n"
    source = MicroSource(memoryview(b"model"), header, "digits")
    program = f"#include <cstdint>\nextern const char kPad[{before}] = {{1}};\nconst volatile char* volatile pad = kPad;\n"
    program += "int main() { return reinterpret_cast<std::uintptr_t>(digits::kModel) % 16 + pad[0] - 1; }\n"
    run_firmware(tmp_path, source, program)


@needs_compiler
def test_files_behind_the_flatbuffer_stay_out_of_the_array(tmp_path: Path) -> None:
    whole = with_files(classifier(), labels="zero\none\n", more="x" * 70000)
    assert run_firmware(tmp_path, micro_source(whole, "digits"), WRITE_ARRAY) == classifier()


@needs_compiler
def test_each_kind_of_operator_is_registered_once_and_the_first_failure_ends_it(tmp_path: Path) -> None:
    source = micro_source(float_ended_classifier(), "digits", arena_bytes=5000)
    methods = ["AddDequantize", "AddFullyConnected", "AddQuantize", "AddSoftmax"]
    called = register(tmp_path, source, suggested_arena(5000))
    assert called == [[*methods[: room + 1], "1" if room == 4 else "0"] for room in range(5)]


def test_the_same_model_gives_the_same_source_wherever_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = micro_source(classifier(), "digits", arena_bytes=1504)
    text = b"".join(first)
    monkeypatch.chdir(tmp_path)
    again = micro_source(classifier(), "digits", arena_bytes=1504)
    assert (again.header, b"".join(again)) == (first.header, text)
    assert b"".join(first) == text  # a second reading of the same source


def test_an_archive_within_the_model_is_kept() -> None:
    archive = np.frombuffer(with_files(b"", labels="zero\none\n"), np.int8)
    x, y = Tensor("x", "int8", (1, 4), 0.1), Tensor("y", "int8", (1, len(archive)), 0.1)
    flatbuffer = model((x,), (y,), [Op("ADD", (x, constant("z", archive, "int8", 0.1)), (y,))])
    assert zipfile.is_zipfile(io.BytesIO(flatbuffer))
    assert flatbuffer_alone(flatbuffer) == flatbuffer
    assert flatbuffer_alone(with_files(flatbuffer, labels="zero")) == flatbuffer


@pytest.mark.parametrize("cut", [1, 2, 4, 22, 40, 100])
def test_a_damaged_archive_is_taken_for_a_part_of_the_model(cut: int) -> None:
    damaged = with_files(classifier(), labels="zero\none\n")[:-cut]
    assert flatbuffer_alone(damaged) == damaged


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, (16 << 14) - 1, 16 << 14, (16 << 14) + 1])
def test_every_byte_is_written_whatever_the_size(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    text = b"".join(MicroSource(memoryview(data), b"", "digits")).decode()
    assert bytes(int(value, 16) for value in re.findall(r"0x([0-9a-f]{2}),", text)) == data
    assert max(map(len, text.splitlines())) <= 80


def test_a_large_model_is_written_in_little_memory() -> None:
    source = MicroSource(memoryview(bytes(100 << 20)), b"", "digits")
    tracemalloc.start()
    written = sum(map(len, source))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert written > 5 * (100 << 20)
    assert peak < 8 << 20


def test_the_arena_has_a_quarter_more_than_was_measured_in_whole_kibibytes() -> None:
    for measured in (1, 819, 820, 1023, 1024, 1504, 100_000):
        size = suggested_arena(measured)
        assert size % 1024 == 0
        assert 0 <= size - 1.25 * measured < 1024
    assert b"kArenaSize" not in micro_source(classifier(), "digits").header


@pytest.mark.parametrize(
    ("flatbuffer", "namespace", "message"),
    [
        (top_k(), "digits", "^TensorFlow Lite Micro has no operator TOPK_V2; replace the layers that use them$"),
        (classifier(), "my digits", "^namespace 'my digits': not a name that C\\+\\+ takes .* for example 'my_digits'$"),
        (classifier(), "switch", "^namespace 'switch': taken in C\\+\\+; "),
        (b"PK", "digits", "^not a LiteRT flatbuffer "),
        (model((), (), []), "digits", "^the model has no operator"),
    ],
)
def test_what_cannot_be_source_is_told_in_one_line(flatbuffer: bytes, namespace: str, message: str) -> None:
    with pytest.raises(EdgeError, match=message) as raised:
        micro_source(flatbuffer, namespace)
    assert "\n" not in str(raised.value)


def test_operators_of_graphs_beside_the_main_one_are_registered_too() -> None:
    # TensorFlow Lite Micro prepares every graph of a model, whichever runs.
    x, y = Tensor("x", "float32", (1, 4)), Tensor("y", "float32", (1, 4))
    graphs = [Graph("serving_default", (x,), (y,), (Op("ABS", (x,), (y,)),)), Graph("other", (x,), (y,), (Op("NEG", (x,), (y,)),))]
    header = micro_source(pack(graphs), "digits").header.decode()
    assert re.findall(r"resolver\.(Add\w+)\(\)", header) == ["AddAbs", "AddNeg"]
    assert "kOperatorCount = 2;" in header
