"""`tfx-edge channel tick` and `policy`: what channels do by themselves."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from tfx_edge.cli.channel.options import CHANNELS, KEYRING, NAME, NAMES, REASON, keyring_in, plain, read_contract, show, storage_of
from tfx_edge.cli.options import JSON, tell
from tfx_edge.schemas import ChannelPolicy, EdgeError


@click.command()
@CHANNELS
@NAMES
@KEYRING
@JSON
def tick(channels: str, names: tuple[str, ...], keyring: Path, as_json: bool) -> None:
    """Apply the rules of all channels, or of those that are named, once: stop, spread, promote, renew signatures. Made for a schedule.

    Run it at least daily, or the timestamps end and devices take the channels for frozen. Exit status 1 where a channel couldn't be
    handled; the others are nevertheless.

    Example: tfx-edge channel tick /srv/channels --keyring /secrets/keyring.json
    """
    from tfx_edge.release.names import channels_in
    from tfx_edge.release.tick import tick

    storage = storage_of(channels)
    wanted = names or channels_in(storage)
    if not wanted:
        raise EdgeError(f"{channels}: no channels; make them with `tfx-edge channel init`")
    actions = tick(storage, wanted, keyring_in(keyring))
    if as_json:
        click.echo(json.dumps([asdict(action) for action in actions], indent=2))
    for action in () if as_json else actions:
        release = f"release {action.release} " if action.release is not None else ""
        click.echo(plain(f"{action.channel}: {release}{action.action}: {action.text}"), err=action.action == "failed")
    if not as_json and not actions:
        click.echo("nothing is due")
    if any(action.action == "failed" for action in actions):
        sys.exit(1)


@click.command()
@CHANNELS
@NAME
@click.option("--set", "file", type=click.Path(path_type=Path), help="JSON of a ChannelPolicy, which is the channel's from now on.")
@click.option("--keyring", type=click.Path(path_type=Path), envvar="TFX_EDGE_KEYRING", help="With --set. [env: TFX_EDGE_KEYRING]")
@REASON
@JSON
def policy(channels: str, name: str, file: Path | None, keyring: Path | None, reason: str, as_json: bool) -> None:
    """Print the rules of the channel NAME, a JSON document with and without --json, or give it others.

    Example: tfx-edge channel policy /srv/channels canary --set canary.json --keyring /secrets/keyring.json
    """
    from tfx_edge.release.channel import open_channel
    from tfx_edge.release.policy import set_policy

    storage = storage_of(channels)
    if file is None:
        show(open_channel(storage, name).policy)
        return
    if keyring is None:
        raise EdgeError("--set signs the rules; give --keyring")
    set_policy(storage, name, read_contract(file, ChannelPolicy), keyring_in(keyring), reason=reason)
    tell(as_json, f"{name}: has the rules of {file}", channel=name, policy=str(file))
