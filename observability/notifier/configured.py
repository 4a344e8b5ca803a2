"""The file that says who is told."""

import os
import re
from pathlib import Path

from tfx_edge.schemas.errors import ConfigError, EdgeError
from tfx_edge.schemas.notify import NotifierConfig

VARIABLE = "TFX_EDGE_NOTIFY"

_URL = re.compile(r"\b(https?)://[^\s'\"]+")


def read_config(path: str) -> NotifierConfig:
    """Reads a notify.json.

    Raises:
        EdgeError: it can't be read, or isn't one; a URL that stands in it by mistake isn't in the error.
    """
    try:
        return NotifierConfig.from_json(Path(path).read_bytes())
    except OSError as error:
        raise EdgeError(f"{path}: can't be read ({error.strerror}); expected the JSON of a NotifierConfig") from None
    except ConfigError as error:
        text = _URL.sub(r"\1://[hidden]", str(error))
        raise EdgeError(f"{path}: {text}") from None


def configured() -> NotifierConfig | None:
    """What TFX_EDGE_NOTIFY names; None where it isn't set.

    Raises:
        EdgeError: as `read_config`.
    """
    path = os.environ.get(VARIABLE)
    return read_config(path) if path else None
