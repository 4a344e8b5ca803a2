"""What the channel commands have in common."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from pydantic import TypeAdapter, ValidationError

from tfx_edge.schemas import Config, ConfigError, EdgeError
from tfx_edge.schemas.release import Name

if TYPE_CHECKING:
    from tfx_edge.release.publish import Published
    from tfx_edge.release.storage import Storage
    from tfx_edge.schemas import Keyring

Contract = TypeVar("Contract", bound=Config)
_NAME = TypeAdapter[str](Name)


def checked_name(_: click.Context, __: click.Parameter, value: "str | tuple[str, ...]") -> "str | tuple[str, ...]":
    """Refuses what can't be a channel's name before a folder of that name is made; a callback of click's.

    Raises:
        EdgeError: a name can't be a channel's.
    """
    for name in (value,) if isinstance(value, str) else value:
        try:
            _NAME.validate_python(name)
        except ValidationError as error:
            raise EdgeError(f"channel {error.errors()[0]['ctx']['error']}") from None
    return value


CHANNELS = click.argument("channels")
NAME = click.argument("name", callback=checked_name)
NAMES = click.argument("names", nargs=-1, callback=checked_name)
KEYRING = click.option(
    "--keyring",
    type=click.Path(path_type=Path),
    envvar="TFX_EDGE_KEYRING",
    required=True,
    help="keyring.json: where the private keys are. [env: TFX_EDGE_KEYRING]",
)
RELEASE = click.option("--release", type=click.IntRange(min=1), help="Its number. [default: the newest]")
REASON = click.option("--reason", default="", help="For the channel's log.")


def storage_of(channels: str) -> "Storage":
    """Where channels lie.

    Raises:
        EdgeError: a URL, and TFX isn't installed.
    """
    from tfx_edge.release.storage import LocalStorage

    if "://" not in channels:
        return LocalStorage(Path(channels))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow, which fileio brings, greets
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


def read_contract(file: Path, contract: type[Contract]) -> Contract:
    """Reads a document that the user named.

    Raises:
        EdgeError: it can't be read, or isn't one.
    """
    try:
        return contract.from_json(read_document(file))
    except ConfigError as error:
        raise EdgeError(f"{file}: {error}") from None


def require_new(file: Path) -> None:
    """Checks that a file can be made without another one's loss.

    Raises:
        EdgeError: it is there already.
    """
    if file.exists():
        raise EdgeError(f"{file}: is there already; remove it or name another file")


def write_new(file: Path, content: bytes) -> None:
    """Writes a file that the user named, whole or not at all.

    Raises:
        EdgeError: it is there already, or can't be written.
    """
    from tfx_edge.release.storage import LocalStorage

    require_new(file)
    LocalStorage(file.absolute().parent).write(file.name, content)


def plain(text: str) -> str:
    """A text that others wrote, such as the name of a file that a device dropped, on one line and without orders to the terminal."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


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
