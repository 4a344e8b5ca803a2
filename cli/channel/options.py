"""What the channel commands have in common."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfx_edge.schemas import Config, EdgeError

if TYPE_CHECKING:
    from tfx_edge.release.publish import Published
    from tfx_edge.release.storage import Storage
    from tfx_edge.schemas import Keyring

CHANNELS = click.argument("channels")
NAME = click.argument("name")
KEYRING = click.option(
    "--keyring",
    type=click.Path(path_type=Path),
    envvar="TFX_EDGE_KEYRING",
    required=True,
    help="keyring.json: where the private keys are. [env: TFX_EDGE_KEYRING]",
)
RELEASE = click.option("--release", type=click.IntRange(min=1), help="Its number. [default: the newest]")
REASON = click.option("--reason", default="", help="For the channel's log.")
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")


def storage_of(channels: str) -> "Storage":
    """Where channels lie.

    Raises:
        EdgeError: a URL, and TFX isn't installed.
    """
    from tfx_edge.release.storage import LocalStorage

    if "://" not in channels:
        return LocalStorage(Path(channels))
    try:
        from tfx_edge.components.edge_promoter.channels import storage_of as remote
    except ImportError as error:
        raise EdgeError(f"{channels}: TFX reaches it, and isn't installed; pip install 'tfx-edge[tfx]', or name a folder") from error
    return remote(channels)


def keyring_in(file: Path) -> "Keyring":
    """Reads a keyring."""
    from tfx_edge.release.keys import load_keyring

    return load_keyring(file)


def read_document(file: Path) -> bytes:
    """Reads a file that the user named.

    Raises:
        EdgeError: it can't be read.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise EdgeError(f"{file}: can't be read ({error.strerror})") from error


def write_new(file: Path, content: bytes) -> None:
    """Writes a file that the user named, whole or not at all.

    Raises:
        EdgeError: it is there already, or can't be written.
    """
    from tfx_edge.release.storage import LocalStorage

    if file.exists():
        raise EdgeError(f"{file}: is there already; remove it or name another file")
    LocalStorage(file.absolute().parent).write(file.name, content)


def show_published(published: "Published", as_json: bool, done: str) -> None:
    """Says what became of a release."""
    if as_json:
        show(published.release)
    else:
        release, name = published.release, published.channel.name
        what = done if published.changed else "is on offer already"
        click.echo(f"{name}: release {release.number} {what}, for {release.share:.0%} of the devices that it is for")


def show(document: Config) -> None:
    """Prints a document as JSON."""
    click.echo(document.to_json(), nl=False)
