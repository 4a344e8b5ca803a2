"""What a report shows of an example's features: numbers, and a small picture where the shape is that of an image."""

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.schemas import ExampleFeature, ExampleImage

_FEATURES, _VALUES, _TEXT = 24, 16, 100  # features of an example, values of a feature, letters of a value
_SIDE = 64  # pixels
_SMALLEST = 4
_RANGES = ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0), (-128.0, 127.0))


def example_view(row: Mapping[str, NDArray[Any]]) -> tuple[ExampleFeature, ...]:
    """The features of one example, `[...]` each by name: images first, no more than 24 in all, the first 16 values of each."""
    found = [_feature(name, np.asarray(value)) for name, value in sorted(row.items())]
    return tuple(sorted(found, key=lambda feature: feature.image is None)[:_FEATURES])


def _feature(name: str, value: NDArray[Any]) -> ExampleFeature:
    return ExampleFeature(
        name=name,
        dtype="str" if value.dtype.kind in "OSU" else value.dtype.name,
        shape=value.shape,
        values=tuple(_plain(v) for v in value.reshape(-1)[:_VALUES].tolist()),
        image=_image(value),
    )


def _plain(value: Any) -> float | str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    text = str(value)
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"


def _image(value: NDArray[Any]) -> ExampleImage | None:
    """A picture of rows, columns and 1, 3 or 4 channels; None of anything else."""
    if value.ndim != 3 or value.shape[2] not in (1, 3, 4) or min(value.shape[:2]) < _SMALLEST or value.dtype.kind not in "fiu":
        return None
    step = math.ceil(max(value.shape[:2]) / _SIDE)
    small = value[::step, ::step].astype(np.float64)
    if not np.isfinite(small).all():
        return None
    # How a network takes its pixels: the first of the usual ranges that holds them.
    lowest, highest = float(small.min()), float(small.max())
    low, high = next(((a, b) for a, b in _RANGES if a <= lowest and highest <= b), (lowest, max(highest, lowest + 1)))
    grey = np.round((small - low) / (high - low) * 255).astype(np.uint8)
    height, width, channels = small.shape
    return ExampleImage(
        height=height, width=width, channels=channels, step=step, low=low, high=high, pixels=base64.b64encode(grey.tobytes()).decode()
    )
