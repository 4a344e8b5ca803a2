"""OpenTelemetry metrics: of what a process sets up itself, or of an exporter that OpenTelemetry's own environment variables name.

`OTEL_METRICS_EXPORTER=console` is the simplest; a collector's address in `OTEL_EXPORTER_OTLP_ENDPOINT` means `otlp`, whose exporter is a
package of its own. Without either, and without the extra `otel`, nothing happens here.
"""

import functools
import importlib.metadata
import logging
import os
import sys
from typing import Any

from tfx_edge.observability.run import current_run

Attribute = str | bool | int | float

# Name: instrument, unit, description. The documentation lists these; a test compares.
INSTRUMENTS = {
    "tfx_edge.component.duration": ("histogram", "s", "Time of a component's executor."),
    "tfx_edge.calibration.examples": ("gauge", "{example}", "Examples that CalibrationGen sampled."),
    "tfx_edge.model.size": ("gauge", "By", "Size of the exported flatbuffer."),
    "tfx_edge.model.compressed_size": ("gauge", "By", "The same after gzip."),
    "tfx_edge.model.sparsity": ("gauge", "1", "Share of zeros among the weights that Pruner pruned."),
    "tfx_edge.gate.difference": ("gauge", "1", "Edge model's metric minus float model's, over all examples."),
    "tfx_edge.gate.verdicts": ("counter", "{model}", "Models that EdgeValidator judged."),
    "tfx_edge.channel.events": ("counter", "{event}", "Releases promoted, rolled back or stopped."),
    "tfx_edge.channel.release": ("gauge", "{release}", "Number of the newest release on offer."),
}

_PROTOCOLS = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http", "http/json": "otlp_json_http"}
_PACKAGES = {"otlp": "otlp-json-http"}

_log = logging.getLogger(__name__)


def measure(name: str, value: float, **attributes: Attribute) -> None:
    """Records a value of a gauge or histogram, marked with pipeline and component."""
    instrument = _instrument(name)
    if instrument is not None:
        record = instrument.set if INSTRUMENTS[name][0] == "gauge" else instrument.record
        record(value, _marked(attributes))


def count(name: str, **attributes: Attribute) -> None:
    """Adds one to a counter."""
    instrument = _instrument(name)
    if instrument is not None:
        instrument.add(1, _marked(attributes))


def flush() -> None:
    """Exports what was recorded, since a component's process may end at once; waits for an exporter no longer than OpenTelemetry does."""
    provider = _provider()
    if provider is not None and hasattr(provider, "force_flush"):
        provider.force_flush()


def _marked(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    run = current_run()  # no run id: every run would be a time series of its own
    marks = {"pipeline": run.pipeline, "component": run.component}
    return {**{f"tfx_edge.{key}": value for key, value in marks.items() if value is not None}, **attributes}


def _instrument(name: str) -> Any:
    provider = _provider()
    return None if provider is None else _created(provider, name)


@functools.lru_cache(maxsize=256)
def _created(provider: Any, name: str) -> Any:
    kind, unit, description = INSTRUMENTS[name]
    return getattr(provider.get_meter("tfx_edge"), f"create_{kind}")(name, unit=unit, description=description)


def _provider() -> Any:
    """The process's own, or one made of the environment; None where there is neither, and then OpenTelemetry isn't even imported."""
    wanted = bool(_exporters())
    if not wanted and "opentelemetry.sdk.metrics" not in sys.modules:
        return None
    try:
        from opentelemetry.metrics import get_meter_provider
        from opentelemetry.sdk.metrics import MeterProvider
    except ImportError:
        _say_once("an exporter of metrics is set and OpenTelemetry isn't installed; pip install 'tfx-edge[otel]'")
        return None
    provider = get_meter_provider()
    if isinstance(provider, MeterProvider):
        return provider
    return _made() if wanted else None


@functools.lru_cache(maxsize=1)
def _made() -> Any:
    """A provider of the exporters that the environment names, the process's from now on; None where one of them isn't there."""
    from opentelemetry.metrics import set_meter_provider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    readers = []
    for name in _exporters():
        there = importlib.metadata.entry_points(group="opentelemetry_metrics_exporter")
        found = [point for wanted in _entry_points(name) for point in there.select(name=wanted)]
        if not found:
            _say_once(f"there is no exporter {name!r}; install its package, for example opentelemetry-exporter-{_PACKAGES.get(name, name)}")
            return None
        made = found[0].load()()
        readers.append(made if isinstance(made, MetricReader) else PeriodicExportingMetricReader(made))
    provider = MeterProvider(metric_readers=readers)
    set_meter_provider(provider)
    return provider


def _exporters() -> tuple[str, ...]:
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ()
    named = os.environ.get("OTEL_METRICS_EXPORTER", "")
    if not named:
        places = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
        return ("otlp",) if any(os.environ.get(place) for place in places) else ()
    return tuple(name for name in (part.strip() for part in named.split(",")) if name and name != "none")


def _entry_points(exporter: str) -> tuple[str, ...]:
    """OpenTelemetry's names of an exporter: of OTLP's protocols the one that OTEL_EXPORTER_OTLP_PROTOCOL names, or any over HTTP."""
    if exporter != "otlp":
        return (exporter,)
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    return (_PROTOCOLS[protocol],) if protocol in _PROTOCOLS else ("otlp_proto_http", "otlp_json_http")


@functools.lru_cache(maxsize=16)
def _say_once(text: str) -> None:
    _log.warning("no metrics: %s", text)
