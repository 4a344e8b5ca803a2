"""Names for a C++ namespace, against the compiler that takes or refuses them."""

import random
import shutil
import string
import subprocess

import pytest

from tfx_edge.schemas import EdgeError, ExportConfig
from tfx_edge.schemas.cpp_names import RESERVED, cpp_namespace, namespace_of
from tfx_edge.schemas.target import Target

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on this machine")
OURS = {"std", "tflite"}  # namespaces already, which C++ would let anybody reopen


def compiles(*names: str) -> bool:
    """Whether a program may have namespaces of these names."""
    program = "".join(f"namespace {name} {{ int x; }}\n" for name in names) + "int main() {}\n"
    command = ["g++", "-std=gnu++20", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=program, text=True, capture_output=True, check=False).returncode == 0


def random_names(count: int, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    letters = string.ascii_letters + string.digits + '_-. /é\n"'
    return ["".join(generator.choices(letters, k=generator.randrange(1, 12))) for _ in range(count)]


def accepted(name: str) -> bool:
    try:
        return cpp_namespace(name) == name
    except ValueError:
        return False


@needs_compiler
def test_the_compiler_takes_every_name_that_is_accepted() -> None:
    names = {*filter(accepted, random_names(3000)), *map(namespace_of, random_names(500)), "digits_v2", "a", "Z9"}
    assert len(names) > 100
    assert compiles(*names)


@needs_compiler
@pytest.mark.parametrize("name", sorted(RESERVED - OURS))
def test_the_compiler_refuses_every_reserved_word(name: str) -> None:
    assert not accepted(name)
    assert not compiles(name)


@pytest.mark.parametrize("name", ["", "8x8", "a b", "a-b", "café", "_a", "a__b", "a\n", "x" * 3 + ";", "std", "class"])
def test_another_name_is_refused_with_one_that_is_accepted(name: str) -> None:
    with pytest.raises(ValueError, match="for example '(.+)'$") as raised:
        cpp_namespace(name)
    assert accepted(str(raised.value).rsplit("'", 2)[1])


def test_every_name_of_a_model_makes_a_namespace() -> None:
    for name in [*random_names(2000), *RESERVED, "", "数字", "Digits (8 x 8), v1.2"]:
        assert accepted(namespace_of(name))


def test_the_config_makes_the_namespace_of_the_name_unless_it_is_given() -> None:
    assert ExportConfig().namespace == "model"
    assert ExportConfig(name="Wake word 3").namespace == "wake_word_3"
    assert ExportConfig(name="Wake word 3", cpp_namespace="wake").namespace == "wake"
    with pytest.raises(EdgeError, match=r"^ExportConfig.cpp_namespace: got 'wake word'; .* for example 'wake_word' "):
        ExportConfig(cpp_namespace="wake word")


def test_targets_are_profiles_by_name_or_with_settings() -> None:
    board = Target(profile="ethos-u55", accelerator="ethos-u55-64")
    config = ExportConfig(targets=("tflm", board, "litert-cpu", "edgetpu"))
    assert config.targets == (Target(profile="tflm"), board, Target(profile="litert-cpu"), Target(profile="edgetpu"))
    assert ExportConfig.from_json(config.to_json()) == config
    assert ExportConfig.from_json('{"targets": ["tflm"]}') == ExportConfig(targets=("tflm",))


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (("tflmm",), r"^Target.profile: got 'tflmm'; expected one of "),
        (
            ("ethos-u55", "ethos-u65"),
            r"^ExportConfig.targets: .*ethos-u55 and ethos-u65 would write the same files; export a bundle for each",
        ),
        (("tflm", Target(profile="tflm")), "tflm and tflm would write the same files"),
    ],
)
def test_targets_that_cannot_be_are_refused_when_the_config_is_made(targets: tuple[str | Target, ...], message: str) -> None:
    with pytest.raises(EdgeError, match=message):
        ExportConfig(targets=targets)
