"""Who is told what became of a model, and what they are told."""

import re
from datetime import datetime
from string import Template
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, field_validator

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.secrets import refuse_secret, refuse_secrets_within

EventKind = Literal["blessed", "not_blessed", "promoted", "rolled_back", "stopped"]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_REFERENCE = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:/[^\0]+)")


class Notification(Config):
    """What became of a model. None or empty is what the event has not; a template's `$name` is a field of this."""

    event: EventKind
    time: datetime = Field(description="When, in UTC.")
    summary: str = Field(description="All of it in one line.")
    pipeline: str | None = Field(default=None, description="The pipeline's name; this and the next two are None for a command.")
    run_id: str | None = None
    component: str | None = None
    who: str = Field(description="The user and machine that did it.")
    model: str | None = Field(default=None, description="URI of the model's artifact.")
    model_digest: str | None = Field(default=None, description="sha256 of the flatbuffer; of a release: the bundle's digest.")
    size_bytes: int | None = Field(default=None, description="The flatbuffer.")
    metric: str | None = Field(default=None, description="The gate's first metric, over all examples.")
    baseline: float | None = Field(default=None, description="Its value for the float model.")
    candidate: float | None = Field(default=None, description="Its value for the edge model.")
    reasons: tuple[str, ...] = Field(default=(), description="Why not blessed, or why it was done, as given.")
    channel: str | None = Field(default=None, description="Release channel.")
    release: int | None = Field(default=None, description="Number of the release that is on offer now, or that was stopped.")


TEMPLATE_FIELDS = tuple(Notification.model_fields)


def _checked_template(text: str, fields: tuple[str, ...] = TEMPLATE_FIELDS) -> str:
    for match in Template.pattern.finditer(text):
        name = match["named"] or match["braced"]
        if match["invalid"] is not None:
            raise ValueError(f"a lone $ at {match.start()}; write $$ for a dollar sign")
        if name is not None and name not in fields:
            raise ValueError(f"unknown field ${name}; there are {', '.join('$' + field for field in fields)}")
    return text


MessageTemplate = Annotated[str, AfterValidator(lambda text: _checked_template(text))]
"""Text with `$name` for a notification's field, as Python's string.Template has it."""


class Webhook(Config):
    """An HTTP POST with a JSON body, such as chat services take."""

    kind: Literal["webhook"] = "webhook"
    url: str = Field(description="env:NAME or file:/PATH that holds the URL, http or https: such URLs hold tokens.", repr=False)
    authorization: str | None = Field(default=None, description="The same for the Authorization header.", repr=False)
    headers: dict[str, str] = Field(default_factory=dict, description="Further headers; none of them a secret.")
    events: tuple[EventKind, ...] = Field(default=(), description="Those it wants; empty: all.")
    message: MessageTemplate = Field(default="$summary", description="What $message stands for in the body.")
    body: dict[str, JsonValue] | None = Field(
        default={"text": "$message"},  # type: ignore[assignment]  # of str, which JsonValue has
        description="JSON object; every text in it is a template. None: the whole Notification.",
    )
    timeout_s: float = Field(default=5, gt=0, le=60, description="For one attempt.")
    retries: int = Field(default=2, ge=0, le=5, description="Further attempts where the server is down, busy or in error.")

    @field_validator("body")
    @classmethod
    def _templates(cls, body: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        _check_templates(body)
        return body

    def check(self) -> None:  # what may be a secret by mistake: a field's own validator would have the value in its error
        for name, reference in (("url", self.url), ("authorization", self.authorization)):
            if reference is not None and not _REFERENCE.fullmatch(reference):
                raise ValueError(f"{name}: expected env:NAME of a variable or file:/PATH of a file that holds it, never the value itself")
        for name, value in self.headers.items():
            refuse_secret(name, value, "authorization")
            if name.lower() in ("authorization", "cookie", "proxy-authorization"):
                raise ValueError(f"header {name!r} holds secrets; give the value by reference, in authorization")
            if not _TOKEN.fullmatch(name) or not value.isprintable():
                raise ValueError(f"header {name!r:.100}: expected a name as HTTP has it and a value of one line")
        refuse_secrets_within("body", self.body, "authorization")


class PythonHook(Config):
    """A function of one's own, called with the Notification."""

    kind: Literal["python"] = "python"
    function: str = Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$", description="Its import path: package.module.function.")
    events: tuple[EventKind, ...] = Field(default=(), description="Those it wants; empty: all.")
    timeout_s: float = Field(default=30, gt=0, le=600, description="After that nobody waits for it.")


class NotifierConfig(Config):
    """The file that TFX_EDGE_NOTIFY names. Nothing in it is a secret."""

    hooks: tuple[Annotated[Webhook | PythonHook, Field(discriminator="kind")], ...] = Field(min_length=1)


def _check_templates(value: JsonValue) -> None:
    if isinstance(value, str):
        _checked_template(value, ("message", *TEMPLATE_FIELDS))
    elif isinstance(value, dict):
        for part in value.values():
            _check_templates(part)
    elif isinstance(value, list):
        for part in value:
            _check_templates(part)
