"""The report's table of errors by operator: for people, so where it can't be made that is a note, and no reason against a blessing."""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert.child import Note, call_in_child
from tfx_edge.litert.layer_errors import layer_errors
from tfx_edge.schemas import GateConfig, LayerErrors


def tabulate_layers(
    candidate: bytes, float_flatbuffer: Callable[[], bytes], features: Mapping[str, NDArray[Any]] | None, config: GateConfig
) -> tuple[LayerErrors | None, tuple[str, ...]]:
    """The table, and notes on why there is none.

    Args:
        candidate: the flatbuffer.
        float_flatbuffer: gives the baseline's.
        features: examples, `[n, ...]` each, by feature name; None where the models couldn't be run.
        config: says how many examples to use, and whether at all.
    """
    if features is None or config.layer_examples == 0:
        return None, ()
    some = {name: values[: config.layer_examples] for name, values in features.items()}
    try:
        return call_in_child(_measure, float_flatbuffer(), candidate, some, time_limit_s=config.time_limit_s), ()
    except Exception as error:  # noqa: BLE001 - whatever keeps a table from people keeps no model from devices
        return None, (f"errors by operator: {' '.join(str(error).split())}",)


def _measure(note: Note, float_model: bytes, candidate: bytes, features: dict[str, NDArray[Any]]) -> LayerErrors:
    note("comparing operators")
    return layer_errors(float_model, candidate, features)
