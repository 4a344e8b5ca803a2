"""What every executor of the suite tells while it runs, where the environment asks for it: log lines, metrics, a profile."""

import functools
import logging
import os
import time
from collections.abc import Callable
from typing import Any

from tfx.types.artifact import Artifact

from tfx_edge.components.lineage import run_info
from tfx_edge.observability import log_as_asked, metrics, running
from tfx_edge.profiling import profiled

PROFILE = "TFX_EDGE_PROFILE"

Artifacts = dict[str, list[Artifact]]
Do = Callable[[Any, Artifacts, Artifacts, dict[str, Any]], None]

# Numbers that executors leave on their artifacts, for whoever looks at ML Metadata; here: metric by property.
_FIGURES = {
    "count": "tfx_edge.calibration.examples",
    "sparsity": "tfx_edge.model.sparsity",
    "size_bytes": "tfx_edge.model.size",
    "gzip_bytes": "tfx_edge.model.compressed_size",
}

_log = logging.getLogger(__name__)


def observed(do: Do) -> Do:
    """Decorates an executor's `Do`: marks log lines and metrics with the run, measures, and profiles into the folder TFX_EDGE_PROFILE."""

    @functools.wraps(do)
    def observed_do(self: Any, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        as_json = log_as_asked()
        run = run_info(self._context, input_dict)
        name = run.component or type(self).__module__.split(".")[-2]
        start = time.monotonic()
        outcome = "failed"
        with running(run):
            try:
                with profiled(os.environ.get(PROFILE), name):
                    do(self, input_dict, output_dict, exec_properties)
                outcome = "done"
                _measure(output_dict)
            except Exception as error:
                if as_json:  # orchestrators print it in their own way
                    _log.error("%s failed", name, exc_info=error)
                raise
            finally:
                seconds = time.monotonic() - start
                if as_json:
                    _log.info("%s %s after %.1f s", name, outcome, seconds, extra={"outcome": outcome, "seconds": round(seconds, 3)})
                metrics.measure("tfx_edge.component.duration", seconds, outcome=outcome)
                metrics.flush()

    return observed_do


def _measure(outputs: Artifacts) -> None:
    for artifact in (artifact for artifacts in outputs.values() for artifact in artifacts):
        for key, metric in _FIGURES.items():
            if artifact.has_custom_property(key):
                value = artifact.get_custom_property(key)
                metrics.measure(metric, value)
