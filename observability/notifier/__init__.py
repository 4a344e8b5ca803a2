"""Tells others what became of a model, as the file that TFX_EDGE_NOTIFY names says. What can't be told never fails the work.

configured.py  the file
delivery.py    each hook in time, or not at all
template.py    fields into texts
webhook.py     HTTP
python_hook.py a function of one's own
"""

from tfx_edge.observability.notifier.delivery import notify

__all__ = ["notify"]
