"""Facts about a flatbuffer."""

import hashlib
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from ai_edge_litert.tools import flatbuffer_utils

from tfx_edge.litert import inspect
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.versions import runtime_supports


def test_operators_are_counted_by_name(image_model: bytes, scalar_model: bytes) -> None:
    assert inspect.operators(image_model) == {"CONV_2D": 1, "FULLY_CONNECTED": 1, "RESHAPE": 1, "SOFTMAX": 1}
    assert inspect.operators(scalar_model) == {"CONCATENATION": 1, "FULLY_CONNECTED": 3}


def test_the_digest_is_the_files_sha256(image_model: bytes) -> None:
    assert inspect.digest(image_model) == hashlib.sha256(image_model).hexdigest()


def test_the_gzipped_size_is_gzips_own_and_does_not_change_with_time(image_model: bytes) -> None:
    size = inspect.gzip_size(image_model)
    piped = subprocess.run(["gzip", "-9nc"], input=image_model, capture_output=True, check=True).stdout
    assert abs(size - len(piped)) <= len(piped) // 100  # another zlib may choose other blocks
    time.sleep(1.1)
    assert inspect.gzip_size(image_model) == size


@pytest.mark.parametrize(
    ("required", "available", "supported"),
    [
        ("1.14.0", "1.5.0", False),  # as text, 1.14 would come before 1.5
        ("1.5.0", "1.14.0", True),
        ("2.3.0", "2.16.1", True),
        ("2.17.0", "2.16.1", False),
        ("2.3", "2.3.0", True),
        ("2.3.1", "2.3", False),
        (None, "1.0", True),
        ("2.22.0-dev0", "2.22.0", True),
        ("1.", "99.0", False),  # damage, not a version
        ("UNKNOWN", "99.0", False),
        ("2.3.0", "unreleased", False),
    ],
)
def test_versions_compare_as_numbers(required: str | None, available: str, supported: bool) -> None:
    assert runtime_supports(required, available) is supported


def test_the_runtime_installed_here_runs_what_the_converter_here_writes(image_model: bytes) -> None:
    needs = inspect.minimum_runtime(image_model)
    assert needs is not None
    assert runtime_supports(needs)
    assert not runtime_supports("99.0")
    assert inspect.runtime().startswith("LiteRT 2.")


def test_the_newest_of_versions_is_by_number_and_an_unknown_one_wins() -> None:
    assert inspect.newest_version(["1.5.0", "1.14.0", "1.9"]) == "1.14.0"
    assert inspect.newest_version(["1.5.0", "UNKNOWN"]) == "UNKNOWN"


@pytest.mark.parametrize("size", [0, 3, 10, 1000])
def test_a_damaged_file_is_an_error(image_model: bytes, size: int) -> None:
    with pytest.raises(EdgeError, match=f"{size} bytes"):
        inspect.operators(image_model[:size])


def test_a_file_that_is_no_flatbuffer_is_an_error() -> None:
    with pytest.raises(EdgeError, match=r"no TFL3 identifier\); expected a .tflite file"):
        inspect.operators(b"PK\3\4" * 100)


def test_an_operator_without_a_code_is_damage_and_one_of_an_unknown_code_is_named_so(scalar_model: bytes) -> None:
    def without_code(parsed: Any) -> None:
        parsed.subgraphs[0].operators[0].opcodeIndex = 99

    def unknown_code(parsed: Any) -> None:
        parsed.operatorCodes[0].builtinCode = 9999

    with pytest.raises(EdgeError, match="a damaged LiteRT flatbuffer: operator code 99, the file has 2"):
        inspect.operators(edited(scalar_model, without_code))
    assert "UNKNOWN_9999" in inspect.operators(edited(scalar_model, unknown_code))


def edited(model: bytes, edit: Callable[[Any], None]) -> bytes:
    parsed = inspect.parse(model)
    edit(parsed)
    return bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))
