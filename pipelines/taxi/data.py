"""Made-up taxi rides in the form of Chicago's: numbers, categories, hours and days; some values are missing.

Whether the tip is large follows from the payment, the fare and the hour, with noise.
"""

from pathlib import Path

import numpy as np

from tfx_edge.pipelines.example_files import Row, split_rows, write_splits

LABEL = "big_tipper"
_PAYMENTS = (b"Cash", b"Credit Card", b"No Charge", b"Mobile")
_COMPANIES = (b"Blue", b"Yellow", b"Sun", b"City", b"Checker", b"Star")


def rows(count: int = 3000, seed: int = 0) -> list[Row]:
    """Rides as raw features; None is a missing value."""
    rng = np.random.default_rng(seed)
    return [_ride(rng) for _ in range(count)]


def _ride(rng: np.random.Generator) -> Row:
    miles = float(rng.gamma(2.0, 2.0))
    fare = 3.0 + 2.2 * miles + float(rng.normal(0, 1))
    payment, company = rng.choice(4, p=[0.4, 0.45, 0.05, 0.1]), rng.choice(6)
    hour = int(rng.integers(0, 24))
    score = 4.0 * (payment in (1, 3)) - 2.0 + 0.06 * (fare - 12) + 0.8 * (hour >= 18) - 0.5 * (company == 2)
    ride: dict[str, object] = {
        "trip_miles": miles,
        "fare": fare,
        "trip_seconds": int(miles * 180 + rng.integers(60, 600)),
        "payment_type": _PAYMENTS[payment],
        "company": _COMPANIES[company],
        "trip_start_hour": hour,
        "trip_start_day": int(rng.integers(1, 8)),
        LABEL: int(rng.random() < 1 / (1 + np.exp(-2 * score))),
    }
    for name in ("trip_miles", "trip_seconds", "company"):
        if rng.random() < 0.05:
            ride[name] = None
    return ride


def write_examples(folder: Path) -> None:
    """Writes `train/` and `eval/` below a folder that isn't there yet."""
    if not folder.exists():
        write_splits(folder, split_rows(rows(), LABEL))
