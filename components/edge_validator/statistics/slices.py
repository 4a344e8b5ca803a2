"""Which examples of a batch are in which slice, by TFMA's rules.

TFMA asks its slicing specs once for each example. The answer depends on the sliced features alone, so here they are asked once
for each combination of these features' values.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.slicer import slicer_lib
from tensorflow_model_analysis.utils import util

from tfx_edge.schemas import EdgeError

# Combinations remembered; a feature with more values than this is computed anew now and then.
_REMEMBERED = 100_000


class Slicer:
    """Finds slices. Not for use from several threads at once.

    Attributes:
        keys: every slice found so far; a code of `codes` is a position in `combinations`.
        combinations: the slices, as positions in `keys`, of each combination of values found so far.
    """

    def __init__(self, specs: Sequence[config_pb2.SlicingSpec]) -> None:
        """Takes TFMA's slicing specs; an empty one is the overall slice."""
        self._specs = [slicer_lib.SingleSliceSpec(spec=spec) for spec in specs]
        self._features = sorted({name for spec in specs for name in (*spec.feature_keys, *spec.feature_values)})
        self.forget()

    def forget(self) -> None:
        """Empties `keys` and `combinations`; codes given before are void."""
        self.keys: list[slicer_lib.SliceKeyType] = []
        self.combinations: list[tuple[int, ...]] = []
        self._positions: dict[slicer_lib.SliceKeyType, int] = {}
        self._codes: dict[tuple[Any, ...], int] = {}

    @property
    def full(self) -> bool:
        """Whether so much is remembered that it is time to `forget`."""
        return len(self._codes) > _REMEMBERED

    def codes(self, features: Mapping[str, Any], count: int, before: Sequence[Mapping[str, Any]] = ()) -> NDArray[np.int64]:
        """The combination of each example, as a position in `combinations`.

        Args:
            features: a batch of TFMA's extracts, as it lies under `tfma.FEATURES_KEY`.
            count: of the examples.
            before: other features, as preprocessing gave them, which TFMA looks at first.
        """
        examples: list[list[Mapping[str, Any]]] = [[] for _ in range(count)]
        for source in (*before, features):
            sliced = {name: source[name] for name in self._features if name in source}
            for example, own in zip(examples, util.split_extracts(sliced) if sliced else [{}] * count, strict=True):
                example.append(own)
        return np.array([self._code(example) for example in examples], np.int64)

    def _code(self, example: list[Mapping[str, Any]]) -> int:
        combination = tuple(_hashable(own[name]) if name in own else None for own in example for name in self._features)
        code = self._codes.get(combination)
        if code is None:
            code = self._codes[combination] = len(self.combinations)
            found = dict.fromkeys(_slices_of(example, self._specs))  # each slice once
            self.combinations.append(tuple(self._position(key) for key in found))
        return code

    def _position(self, key: slicer_lib.SliceKeyType) -> int:
        if key not in self._positions:
            self._positions[key] = len(self.keys)
            self.keys.append(key)
        return self._positions[key]


def _slices_of(example: Sequence[Mapping[str, Any]], specs: Sequence[slicer_lib.SingleSliceSpec]) -> list[slicer_lib.SliceKeyType]:
    try:
        *before, features = example
        found = list(slicer_lib.get_slices_for_features_dicts(before, features, specs))
    except ValueError as error:  # bytes that are no text
        raise EdgeError(f"slices by {', '.join(sorted(features))}: {' '.join(str(error).split())}; slice by text or numbers") from error
    for name, value in (part for key in found for part in key):
        if isinstance(value, (float, np.floating)) and math.isnan(value):
            raise EdgeError(f"slices by {name!r}: the feature is NaN in an example, which is no slice; impute it in Transform")
    return found


def written_key(key: slicer_lib.SliceKeyType) -> tuple[tuple[str, str | int | float], ...]:
    """The key as it is read back from TFMA's files, where bytes are text and floats have single precision."""
    back: tuple[tuple[str, str | int | float], ...] = slicer_lib.deserialize_slice_key(slicer_lib.serialize_slice_key(key))
    return back


def _hashable(value: Any) -> Any:
    array = np.asarray(getattr(value, "values", value))  # TFMA looks at the values of a sparse feature alone
    return (array.shape, tuple(array.ravel().tolist()) if array.dtype == object else array.tobytes())
