"""`tfx-edge channel enrol`: vouches for devices."""

import json
from pathlib import Path

import click

from tfx_edge.cli.channel.options import CHANNELS, KEYRING, NAME, keyring_in, storage_of, write_new
from tfx_edge.cli.options import JSON, tell


@click.command()
@CHANNELS
@NAME
@click.argument("device_id")
@click.argument("public_key")
@KEYRING
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The enrolment, which goes to the device.")
@JSON
def enrol(channels: str, name: str, device_id: str, public_key: str, keyring: Path, output: Path, as_json: bool) -> None:
    """Vouch for a device with the fleet's key: the rules of channels count reports of enrolled devices alone.

    PUBLIC_KEY is what the device prints as its own, 64 hexadecimal digits, or a PEM file.

    Example: tfx-edge channel enrol /srv/channels canary dev-17 3f...9a --keyring /secrets/keyring.json -o dev-17.json
    """
    from tfx_edge.release.channel import open_channel
    from tfx_edge.release.health import enrol
    from tfx_edge.release.keys import parse_public_key

    keys = keyring_in(keyring)
    policy = open_channel(storage_of(channels), name, keys).policy
    envelope = enrol(device_id, parse_public_key(public_key), keys, policy.fleet_keys)
    write_new(output, f"{json.dumps(envelope, indent=2)}\n".encode())
    tell(as_json, f"{output}: device {device_id} is enrolled", device_id=device_id, enrolment=str(output))
