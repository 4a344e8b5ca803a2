"""Drawn shapes as JPEG files: a disc, a square or a cross in some colour, size and place on a noisy ground."""

import io
from pathlib import Path

import numpy as np

from tfx_edge.pipelines.example_files import Row, split_rows, write_splits

LABEL = "shape"
SHAPES = ("disc", "square", "cross")


def rows(count: int = 900, seed: int = 0) -> list[Row]:
    """JPEG files of 40 to 64 pixels a side, and the shape's number."""
    rng = np.random.default_rng(seed)
    return [{"image": _jpeg(rng, label), LABEL: label} for label in (i % len(SHAPES) for i in range(count))]


def _jpeg(rng: np.random.Generator, label: int) -> bytes:
    from PIL import Image

    height, width = rng.integers(40, 65, size=2)
    pixels = rng.normal(rng.uniform(20, 80, size=3), 8, size=(height, width, 3))
    down, across = np.mgrid[:height, :width]
    radius = rng.uniform(0.3, 0.4) * min(height, width)
    y, x = (down - rng.uniform(0.46, 0.54) * height) / radius, (across - rng.uniform(0.46, 0.54) * width) / radius
    inside = (
        y * y + x * x < 1.1,
        np.maximum(abs(y), abs(x)) < 0.9,
        (np.minimum(abs(y), abs(x)) < 0.3) & (np.maximum(abs(y), abs(x)) < 1.1),
    )[label]
    pixels[inside] = rng.normal(rng.uniform(160, 240, size=3), 8, size=(int(inside.sum()), 3))
    file = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


def write_examples(folder: Path) -> None:
    """Writes `train/` and `eval/` below a folder that isn't there yet."""
    if not folder.exists():
        write_splits(folder, split_rows(rows(), LABEL))
