"""Who changes a channel, for its log."""

import getpass
import os


def current_actor() -> str:
    """The user's name on this machine; in a container that knows no users, its number."""
    try:
        return f"{getpass.getuser()}@{os.uname().nodename}"
    except (KeyError, OSError):  # Python before 3.13 raises KeyError
        return f"uid {os.getuid()}@{os.uname().nodename}"
