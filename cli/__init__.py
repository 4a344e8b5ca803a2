"""The `tfx-edge` command: one module a command group, imported when it is called, so that `--help` needs no TensorFlow."""

import importlib
import sys

import click

from tfx_edge import __version__

# Command, the module that holds it under the same name, and its line in `tfx-edge --help`.
_COMMANDS = {
    "channel": "Publish models to devices through signed channels, and take them back.",
    "compare": "Show in what two edge models differ.",
    "compile": "Compile a TFX pipeline into a package for Kubeflow Pipelines.",
    "completion": "Print what makes a shell complete this command.",
    "demo": "Run the digits pipeline to a blessed int8 model that a simulated device runs.",
    "doctor": "Look at what this machine can do, and say what to mend.",
    "inspect": "Show what a .tflite file is made of.",
    "quantize": "Make an edge model of a SavedModel, without a pipeline.",
    "report": "Write a run's verdict and all that led to it as one HTML file.",
    "run-package": "Run a compiled package without a cluster, in containers or as local processes.",
    "schedule": "Keep the recurring runs of a Kubeflow Pipelines server in step with a file.",
    "selftest": "Compare an edge model with its golden vectors.",
    "validate": "Judge a .tflite file against its float baseline, without a pipeline.",
}

EXIT_OK, EXIT_GATE, EXIT_ERROR = 0, 2, 1


class _Commands(click.Group):
    """Imports a command's module when the command runs, not when all are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"tfx_edge.cli.{module}"), module)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tfx-edge")
def cli() -> None:
    """Takes float Keras models to verified .tflite files on edge devices."""


def main() -> None:
    """Entry point. Exit status 0: passed; 2: the gate said no, or the command line is wrong; 1: error."""
    try:
        cli(prog_name="tfx-edge")
    except Exception as error:
        from tfx_edge.schemas import EdgeError  # takes half a second, which `--help` and completion do without

        if not isinstance(error, EdgeError):
            raise
        click.echo(f"error: {error}", err=True)
        sys.exit(EXIT_ERROR)
