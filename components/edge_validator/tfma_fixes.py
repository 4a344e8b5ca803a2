"""Mends combiners of TFMA that count twice.

Five of its combiners merge with `result = next(iter(accumulators))` and then loop over `accumulators`: a list's first part
counts twice, so MeanSquaredError among others is wrong wherever Beam merges partial results. TFMA 0.47 and 0.52 both have it.

A worker gets the combiners pickled and may have imported nothing of ours, so they are pickled to be restored by this module.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
from tensorflow_model_analysis.metrics import (
    cross_entropy_metrics,
    flip_metrics,
    mean_regression_error,
    model_cosine_similarity,
    prediction_difference_metrics,
)

_MODULES = (cross_entropy_metrics, flip_metrics, mean_regression_error, model_cosine_similarity, prediction_difference_metrics)
_FIXED = "_counts_each_part_once"


def fix_combiners() -> None:
    """Makes every combiner of these modules count each part once; a second call changes nothing."""
    for combiner in _combiners():
        if _FIXED not in vars(combiner):
            combiner.merge_accumulators = _once(combiner.merge_accumulators)
            combiner.__reduce__ = _reduce
            setattr(combiner, _FIXED, True)


def _combiners() -> Iterator[Any]:
    for module in _MODULES:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, beam.CombineFn) and "merge_accumulators" in vars(value):
                yield value


def _once(merge: Callable[[Any, Iterable[Any]], Any]) -> Callable[[Any, Iterable[Any]], Any]:
    @functools.wraps(merge)
    def merge_once(self: Any, accumulators: Iterable[Any]) -> Any:
        return merge(self, iter(accumulators))  # of an iterator `next` takes the first part away

    return merge_once


def _reduce(combiner: Any) -> tuple[Any, ...]:
    return _restore, (type(combiner), combiner.__dict__)


def _restore(cls: Any, state: dict[str, Any]) -> Any:
    """Unpickling calls this, which imports this module, which mends the class."""
    combiner = cls.__new__(cls)
    combiner.__dict__.update(state)
    return combiner


fix_combiners()
