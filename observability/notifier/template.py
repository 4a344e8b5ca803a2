"""A notification's fields in texts."""

from string import Template

from pydantic import JsonValue

from tfx_edge.schemas.notify import Notification, Webhook


def body_of(webhook: Webhook, notification: Notification) -> JsonValue:
    """What a webhook posts: its body with every text filled in, so that a quote in a field can't break the JSON."""
    if webhook.body is None:
        document: JsonValue = notification.model_dump(mode="json")
        return document
    fields = fields_of(notification)
    message = Template(webhook.message).substitute(fields)
    return _filled(webhook.body, {**fields, "message": message})


def fields_of(notification: Notification) -> dict[str, str]:
    """Texts by field; empty for what the event has not."""
    plain = notification.model_dump(mode="json", exclude={"reasons"})
    return {**{name: "" if value is None else str(value) for name, value in plain.items()}, "reasons": "; ".join(notification.reasons)}


def _filled(value: JsonValue, fields: dict[str, str]) -> JsonValue:
    if isinstance(value, str):
        return Template(value).substitute(fields)
    if isinstance(value, dict):
        return {key: _filled(part, fields) for key, part in value.items()}
    return [_filled(part, fields) for part in value] if isinstance(value, list) else value
