"""`tfx-edge completion`: the tab key's part of the command line."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands, options and file names of tfx-edge; evaluate it in the shell's start-up file.

    Example: tfx-edge completion bash >> ~/.bashrc
    """
    from tfx_edge.cli import cli

    completer = get_completion_class(shell)
    if completer is None:  # a Choice of what click has
        raise click.UsageError(f"no completion for {shell}")
    click.echo(completer(cli, {}, "tfx-edge", "_TFX_EDGE_COMPLETE").source())
