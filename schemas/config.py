"""The base of every config and document: frozen data, validated where it is made, with errors of one line."""

from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from typing_extensions import Self

from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.secrets import SecretError, refuse_secrets_within


class Config(BaseModel):
    """Immutable, JSON-serializable data. Unknown fields and values out of bounds raise `ConfigError`.

    >>> from tfx_edge.schemas import PolynomialDecay
    >>> PolynomialDecay(power=0)
    Traceback (most recent call last):
    ...
    tfx_edge.schemas.errors.ConfigError: PolynomialDecay.power: got 0; input should be greater than 0 (Exponent of the decay.)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _one_line_errors(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        # An exception that isn't a ValueError passes through pydantic as it is, so a nested config's error keeps its own name.
        try:
            value = handler(data)
        except ValidationError as error:
            raise ConfigError("; ".join(_describe(cls, e) for e in _one_a_value(error.errors(include_url=False), data))) from None
        if isinstance(data, dict):
            _refuse_coercion(cls, data)
        try:
            value.check()
        except ValueError as error:
            raise ConfigError(f"{cls.__name__}: {error}") from None
        return value

    def check(self) -> None:
        """Checks what concerns several fields together; subclasses override it.

        Raises:
            ValueError: the fields don't fit each other; the text names them, their values and the fix.
        """

    def to_json(self) -> str:
        """Serializes to indented JSON with keys in the order of the fields: the same data gives the same text."""
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parses what `to_json` wrote.

        Raises:
            ConfigError: the text isn't JSON, or doesn't fit the schema.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:  # not JSON at all; what doesn't fit the schema is a ConfigError already
            raise ConfigError(f"{cls.__name__}: {error.errors()[0]['msg']}; expected the JSON of a {cls.__name__}") from None


def _refuse_coercion(cls: type[Config], data: dict[Any, Any]) -> None:
    """Pydantic would read True as 1 and "0.01" as 0.01; neither is what its writer meant for certain."""
    for name, value in data.items():
        field = cls.model_fields.get(name) if isinstance(name, str) else None
        if field is None or not isinstance(value, (bool, str)):
            continue
        types = {field.annotation, *get_args(field.annotation)} - {type(None)}
        if types & {int, float} and type(value) not in types:
            about = f" ({field.description})" if field.description else ""
            raise ConfigError(f"{cls.__name__}.{name}: {_got(value)}input should be a number{about}")


def _one_a_value(errors: Sequence[Any], data: Any) -> list[Any]:
    """Where a field takes several types, pydantic tells for each of them what is wrong with the field's value: those errors as one."""
    merged: list[Any] = []
    for error in errors:
        field = error["loc"][0] if len(error["loc"]) == 2 and isinstance(data, dict) else None
        last = merged[-1] if merged else None
        if field is None or error["input"] is not data.get(field):
            merged.append(error)
        elif last is None or last["loc"] != (field,):
            merged.append({**error, "loc": (field,)})
        else:
            last["msg"] += f", or {error['msg'].removeprefix('Input should be ')}"
    return merged


def _describe(cls: type[Config], error: Any) -> str:
    # A dictionary's key may hold line breaks.
    where = ".".join([cls.__name__, *(part if part.isprintable() else ascii(part) for part in map(str, error["loc"]))])
    field = cls.model_fields.get(str(error["loc"][0])) if error["loc"] else None
    about = f" ({field.description})" if field is not None and field.description else ""
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown field; {cls.__name__} has {', '.join(cls.model_fields)}"
    if error["type"] == "missing":
        return f"{where}: missing; give it a value{about}"
    message = message[0].lower() + message[1:]
    got = "" if isinstance(error.get("ctx", {}).get("error"), SecretError) else _got(error["input"])
    return f"{where}: {got}{message}{about}"


def _got(value: Any) -> str:
    """Shows a refused value, unless it might be a secret: errors end in logs."""
    try:
        refuse_secrets_within("", value, "")
    except SecretError:
        return ""
    return f"got {value!r:.200}; "
