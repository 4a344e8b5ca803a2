"""`tfx-edge channel`: signed release channels.

options.py   what the commands have in common
making.py    init, draft-root, trust: channels
releases.py  publish, promote, rollback, stop, expire: what is on offer
running.py   tick, policy: what channels do by themselves
reading.py   status, log
keys.py      key, rotate-key, sign, apply: keys of the roles
devices.py   enrol
"""

import warnings

import click

from tfx_edge.cli.channel.devices import enrol
from tfx_edge.cli.channel.keys import apply, key, rotate_key, sign
from tfx_edge.cli.channel.making import draft_root, init, trust
from tfx_edge.cli.channel.reading import log, status
from tfx_edge.cli.channel.releases import expire, promote, publish, rollback, stop
from tfx_edge.cli.channel.running import policy, tick


@click.group()
def channel() -> None:
    """Publish blessed models to devices through signed channels, spread them by rule, and take them back.

    CHANNELS is a folder with a folder for each channel; with TFX installed also a URL that TFX reaches (gs://, s3://).

    Example: tfx-edge channel status /srv/channels canary
    """
    # securesystemslib's signers import Google's libraries, where those are installed.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"google\.")


_MAKING = (init, draft_root, trust, key, sign, apply, rotate_key, enrol)
_RELEASING = (publish, promote, rollback, stop, expire, tick, policy, status, log)
for _command in (*_MAKING, *_RELEASING):
    channel.add_command(_command)
