"""The suite's hot functions: where its time goes apart from TensorFlow's, LiteRT's and Beam's own."""

import inspect
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

# By module: functions and methods. A test looks that each is there.
HOT = {
    "components.calibration_gen.bottom": ("record_hash", "BottomK.add_input", "BottomK.merge_accumulators"),
    "components.calibration_gen.records": ("KeyRecords.process",),
    "components.edge_validator.model_pair": ("ModelPair.predict",),
    "components.edge_validator.statistics.buffer": ("Buffer.add", "Buffer.flush"),
    "components.examples": ("_encode", "_canonical", "decode", "dense_features"),
    "components.keras_step": ("read_step", "run_step", "write_model"),
    "components.quantizer.ranges": ("_Collect.process",),
    "litert.activation_statistics": ("bin_counts", "merge"),
    "litert.backends.litert": ("quantize", "completed", "with_unique_names"),
    "litert.collector": ("Collector.add", "Collector._run", "Collector._tally"),
    "litert.convert": ("convert",),
    "litert.corrections.adaround": ("ada_round", "_learn"),
    "litert.golden": ("golden_vectors",),
    "litert.packing": ("pack",),
    "litert.planning": ("plan_quantization", "carry_out"),
    "litert.range_methods": ("tensor_ranges", "_mse", "_entropy"),
    "litert.runner": ("Runner.__call__", "Runner._run", "Runner.raw_inputs"),
    "litert.search.evaluator": ("Evaluator._predict",),
    "optimize.clustering.centroids": ("share", "_groups", "_centroids", "_nearest"),
    "optimize.fine_tuning.training": ("fine_tune", "_fit"),
    "optimize.float_model.load": ("load_float_model",),
    "optimize.low_rank.factors": ("svd", "spatial", "tucker2"),
    "optimize.preparation.algorithm": ("prepare",),
    "optimize.pruning.magnitude": ("zero_weights",),
}


def hot_functions() -> Iterator[FunctionType]:
    """Those whose modules are imported: no profile imports what the work doesn't use."""
    for module, names in HOT.items():
        found = sys.modules.get(f"tfx_edge.{module}")
        for name in names if found is not None else ():
            yield function_of(found, name)


def function_of(module: object, name: str) -> FunctionType:
    """A function or method by its dotted name, without decorators.

    Raises:
        AttributeError: there is none.
    """
    found: Any = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    found = inspect.unwrap(getattr(found, "__func__", found))
    if not isinstance(found, FunctionType):
        raise AttributeError(f"{name} is no function")
    return found
