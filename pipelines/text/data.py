"""Made-up reviews: words that praise or blame among others, some of them turned around by "not"."""

from pathlib import Path

import numpy as np

from tfx_edge.pipelines.example_files import Row, split_rows, write_splits

LABEL = "liked"
_GOOD = ("good", "great", "lovely", "brilliant", "fun", "warm")
_BAD = ("bad", "dull", "awful", "boring", "cold", "weak")
_OTHER = ("the", "film", "was", "story", "and", "a", "plot", "very", "it", "actor", "scene", "music", "so", "with", "long", "of")


def rows(count: int = 2400, seed: int = 0) -> list[Row]:
    """Reviews of 4 to 14 words, and 1 where they praise."""
    rng = np.random.default_rng(seed)
    return [_review(rng, i % 2) for i in range(count)]


def _review(rng: np.random.Generator, liked: int) -> Row:
    words = [str(word) for word in rng.choice(_OTHER, size=rng.integers(3, 11))]
    turned = rng.random() < 0.3
    opinion = [str(rng.choice(_GOOD if liked != turned else _BAD))]
    at = int(rng.integers(0, len(words) + 1))
    words[at:at] = ["not", *opinion] if turned else opinion
    return {"review": " ".join(words).encode(), LABEL: liked}


def write_examples(folder: Path) -> None:
    """Writes `train/` and `eval/` below a folder that isn't there yet."""
    if not folder.exists():
        write_splits(folder, split_rows(rows(), LABEL))
