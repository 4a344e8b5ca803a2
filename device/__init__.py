"""What runs on a device: the reference client of release channels. LiteRT, tuf and NumPy are what it needs.

client.py     Device: update, check, status; what happens in which order
channel.py    the channel, as TUF vouches for it
fetch.py      bytes out of a folder or over HTTP, from any place on
download.py   a file, resumed and verified
bundle.py     whether a bundle is undamaged, and for this device
trial.py      the self-test in a process of its own
trials.py     several of them, where one was interrupted
selftest.py   an edge model against its golden outputs; needs LiteRT and NumPy alone
store.py      the folder that the client owns
files.py      writes that outlast a power cut
health.py     signed reports, and the device's key
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx_edge.device.client import Device as Device
    from tfx_edge.device.client import Outcome as Outcome
    from tfx_edge.device.errors import DeviceError as DeviceError

_PLACES = {"Device": "client", "Outcome": "client", "DeviceError": "errors"}


def __getattr__(name: str) -> object:
    # The self-test of a model imports this package too, and shall not wait for tuf.
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
