"""What goes wrong with a release channel, in one line."""

from tfx_edge.schemas.errors import EdgeError


class ChannelError(EdgeError):
    """The channel isn't there, doesn't verify, or refuses what was asked of it; nothing was changed."""


class ChannelBusyError(ChannelError):
    """Another process is changing the channel."""
