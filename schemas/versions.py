"""Versions of TensorFlow Lite, compared as numbers."""

import re

# LiteRT counts its own versions, a flatbuffer names TensorFlow's. LiteRT 2.3, the oldest that is installed with this
# package, is built from TensorFlow 2.22.0-dev0 (its library holds the text), so it has all that 2.21 has.
TFLITE_VERSION = "2.21.0"
"""TensorFlow Lite's version of the LiteRT that is installed with this package."""


def version_numbers(text: str) -> tuple[int, ...] | None:
    """The numbers of a version, without zeros at the end; None for a text that is none.

    >>> version_numbers("2.22.0-dev0"), version_numbers("1.")
    ((2, 22), None)
    """
    numbers = re.fullmatch(r"(\d+(?:\.\d+)*)(?:-\w+)?", text)  # 2.22.0-dev0 is a version, "1." is damage
    if numbers is None:
        return None
    parts = [int(part) for part in numbers[1].split(".")]
    while parts and parts[-1] == 0:  # 2.3 is 2.3.0
        parts.pop()
    return tuple(parts)


def runtime_supports(required: str | None, available: str = TFLITE_VERSION) -> bool:
    """Whether a runtime is new enough for a model; versions compare as numbers, so that 1.14 is newer than 1.5.

    Args:
        required: what a manifest's `minimum_runtime` says; None needs nothing in particular.
        available: TensorFlow Lite version of the runtime, by default of the LiteRT installed here.

    Returns:
        False as well where `required` is no version: converters write UNKNOWN for an operator that no release has.

    >>> runtime_supports("1.14.0", "1.5.0"), runtime_supports("2.3.0", "2.16.1")
    (False, True)
    """
    if required is None:
        return True
    need, have = version_numbers(required), version_numbers(available)
    return need is not None and have is not None and need <= have
