"""What goes wrong on a device, in one line. The model that runs is never affected."""

from tfx_edge.schemas.errors import EdgeError


class DeviceError(EdgeError):
    """The update can't be made now: the channel or the device's disk, key or settings stand in the way. It may be tried again."""


class RefusedError(DeviceError):
    """The release itself isn't fit for this device; its text is the reason."""


def one_line(error: BaseException) -> str:
    """An exception's text on one line; its type's name where it has none."""
    return " ".join(str(error).split())[:300] or type(error).__name__
