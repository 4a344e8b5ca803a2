"""Samples that can't be used, each as the one-line error that says why."""

from collections.abc import Mapping

from tfx_edge.components.calibration_gen.sample import Sample
from tfx_edge.schemas import CalibrationConfig, EdgeError, OverlapCounts


def require_finite(non_finite: Mapping[str, int], population: int, config: CalibrationConfig) -> None:
    """Checks the records that were left out.

    Args:
        non_finite: them by feature, and under "" in all.
        population: the others.
        config: of the sample.

    Raises:
        EdgeError: there are some and `non_finite` is "error", or there are no others.
    """
    count = non_finite.get("", 0)
    if count and (config.non_finite == "error" or not population):
        fix = "mend the data, or fill such values in Transform's preprocessing_fn"
        fix += ", or set non_finite to 'drop'" if population else ""
        raise EdgeError(f"split {config.split!r}: {describe_non_finite(non_finite, count + population)}; {fix}")


def describe_non_finite(non_finite: Mapping[str, int], population: int) -> str:
    """Says of each feature in how many records it isn't finite."""
    features = [f"feature {name!r} is NaN or infinite in {count}" for name, count in sorted(non_finite.items()) if name]
    return f"{', '.join(features)} of the {population} examples"


def require_enough(sample: Sample, non_finite: Mapping[str, int], config: CalibrationConfig) -> None:
    """Checks the size of a sample that holds all the records there are, where it is smaller than asked for.

    Raises:
        EdgeError: there are fewer distinct records than asked for.
    """
    population = sample.population
    if population == 0:
        raise EdgeError(
            f"split {config.split!r}: it holds no examples, num_examples asks for {config.num_examples}; "
            "name a split that has some, or see why the component upstream wrote none"
        )
    distinct = len(sample.records)
    if distinct < config.num_examples:
        dropped = len(sample.shared) if config.overlap == "drop" else 0
        bad = non_finite.get("", 0)
        parts = [f"{population} with {population - distinct - dropped} duplicates"]
        if dropped:
            parts.append(f"{dropped} of them also in a held-out split")
        if bad:
            parts.append(f"{bad} more with NaN or infinity")
        raise EdgeError(
            f"num_examples {config.num_examples}: split {config.split!r} has {distinct} distinct examples ({', '.join(parts)}); "
            f"lower num_examples to {distinct} or less, or give CalibrationGen a split with more data"
            if distinct
            else f"num_examples {config.num_examples}: split {config.split!r} has no example to sample ({', '.join(parts)}); "
            "give CalibrationGen another split"
        )


def require_disjoint(overlap: OverlapCounts | None, config: CalibrationConfig) -> None:
    """Checks what was found in held-out splits.

    Raises:
        EdgeError: there is something and `overlap` is "error".
    """
    if overlap is not None and overlap.found and config.overlap == "error":
        raise EdgeError(f"{describe_overlap(overlap, config)}; mend the splits, or set overlap to 'drop'")


def describe_overlap(overlap: OverlapCounts, config: CalibrationConfig) -> str:
    """Says how many examples are in a held-out split too, and names the first."""
    first = overlap.named[0]
    values = ", ".join(f"{name}: {value}" for name, value in first.values.items())
    return (
        f"{overlap.found} of {overlap.checked} examples of split {config.split!r} are also in {', '.join(map(repr, overlap.splits))}, the "
        f"first with {values} (sha256 {first.digest[:16]})"
    )
