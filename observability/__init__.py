"""What runs in production tell of themselves: log lines as JSON, OpenTelemetry metrics, notifications. All of it is off by default.

run.py        which component runs: what lines and metrics are marked with
logs.py       TFX_EDGE_LOG=json
redaction.py  no secret in a log line
metrics.py    OpenTelemetry, where its own environment variables name an exporter
notifier/     TFX_EDGE_NOTIFY=notify.json: webhooks and functions of one's own
"""

from tfx_edge.observability.logs import log_as_asked
from tfx_edge.observability.run import current_run, running

__all__ = ["current_run", "log_as_asked", "running"]
