"""The reference client's command.

    python -m tfx_edge.device device.json [update|check|status|report|identity|current]

Exit status 0: done, whether there was something new or not; 2: a model failed on this device, and the last good one is kept; 1: error.
"""

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from tfx_edge.device.client import Device
from tfx_edge.schemas.device import DeviceConfig, DeviceStatus, is_url
from tfx_edge.schemas.errors import ConfigError, EdgeError

_ACTIONS = {
    "update": "take what the channel offers (default)",
    "check": "test the model that runs, and go back to the last good one where it fails: after each start of the device",
    "status": "show what runs, and what came of updates",
    "report": "send the health reports that wait",
    "identity": "print the device's id and public key, for a fleet key to sign",
    "current": "print the folder of the bundle that runs",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(1, f"error: {message}; see --help\n")  # argparse's own status is 2, which means a failed model here


def load_config(path: Path) -> DeviceConfig:
    """Reads a device.json; relative paths in it are meant from its own folder.

    Raises:
        EdgeError: it can't be read, or isn't one.
    """
    try:
        config = DeviceConfig.from_json(path.read_bytes())
    except OSError as error:
        raise EdgeError(f"{path}: {error.strerror}; expected the JSON of a DeviceConfig") from None
    except ConfigError as error:
        raise EdgeError(f"{path}: {error}") from None
    folder = path.absolute().parent
    places = {name: getattr(config, name) for name in ("source", "root", "state", "health", "enrolment")}
    absolute = {name: place if place is None or is_url(place) else str(folder / place) for name, place in places.items()}
    return config.model_copy(update=absolute)


def main(arguments: list[str] | None = None) -> int:
    """Does what the command line says; errors are one line on stderr."""
    parser = _Parser(prog="python -m tfx_edge.device", description="Keeps a device's model at what its release channel offers.")
    parser.add_argument("config", type=Path, help="device.json: a DeviceConfig")
    parser.add_argument("action", nargs="?", choices=_ACTIONS, default="update", help="; ".join(f"{k}: {v}" for k, v in _ACTIONS.items()))
    parser.add_argument("--json", action="store_true", help="status: print it as JSON")
    options = parser.parse_args(arguments)
    try:
        return _run(Device(load_config(options.config)), options.action, options.json)
    except EdgeError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1


def _run(device: Device, action: str, as_json: bool) -> int:
    if action in ("update", "check"):
        outcome = device.update() if action == "update" else device.check()
        sys.stdout.write(f"{outcome.message}\n")
        return outcome.exit_status
    if action == "report":
        left = device.report()
        if left is not None:
            raise EdgeError(left)
        sys.stdout.write(f"health reports: {device.status().reports}\n")
    elif action == "current":
        current = device.current()
        if current is None:
            raise EdgeError(f"{device.config.state}: no model yet; run update")
        sys.stdout.write(f"{current}\n")
    elif action == "identity":
        sys.stdout.write(device.identity().to_json())
    else:
        status = device.status()
        sys.stdout.write(status.to_json() if as_json else _text(status))
    return 0


def _text(status: DeviceStatus) -> str:
    device = status.device
    runs = "no model" if status.release is None else f"release {status.release} from {status.folder}"
    asked = "never" if status.last_update is None else f"{status.last_update:%Y-%m-%d %H:%M:%S} UTC: {status.last_message}"
    lines = [
        f"device   {device.device_id}, {device.target}, TensorFlow Lite {device.runtime}{device.region and f', region {device.region}'}",
        f"channel  {status.channel}",
        f"runs     {runs}",
        f"on disk  {', '.join(map(str, status.versions)) or 'nothing'}",
        f"updated  {asked}",
        f"reports  {status.reports}{f'; {status.waiting_reports} wait' if status.waiting_reports else ''}",
        *(f"failed   release {verdict.release}: {verdict.reason}" for verdict in status.failed),
    ]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
