"""334 Palmer penguins (Gorman, Williams and Fraser 2014; CC0): four measurements, scaled to 0..1, and the species, 0 to 2."""

import csv
from pathlib import Path

from tfx_edge.pipelines.example_files import Row, split_rows, write_splits

LABEL = "species"


def rows() -> list[Row]:
    """The penguins, sorted by species."""
    with Path(__file__).with_name("penguins.csv").open() as file:
        return [{k: int(v) if k == LABEL else float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def write_examples(folder: Path) -> None:
    """Writes `train/` and `eval/` below a folder that isn't there yet."""
    write_splits(folder, split_rows(rows(), LABEL))
