"""`python -m tfx_edge.kubeflow.manifests check` for CI, `update` for whoever changed the pipeline, its environment or the image."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's greetings; before it is imported

import click

from tfx_edge.schemas import EdgeError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Packages in Git that clusters take their pipelines from."""


@cli.command()
@click.argument("overlay", nargs=-1)
def check(overlay: tuple[str, ...]) -> None:
    """Compile the packages of each OVERLAY, by default of all, and fail where Git has something else."""
    from tfx_edge.kubeflow.manifests.committed import committed, overlays

    for name in overlay or overlays():
        for each in committed(name):
            each.check()
            click.echo(f"{each.file}: in step with the code")


@cli.command()
@click.argument("overlay")
@click.option("--image", help="With its digest: REPOSITORY@sha256:...; by default that of the package as it is.")
@click.option("--version", help="Name of the version; by default the checkout's commit.")
def update(overlay: str, image: str | None, version: str | None) -> None:
    """Write the packages of OVERLAY anew, for a commit of their own."""
    from tfx_edge.kubeflow.manifests.committed import committed, head

    version = version or head()
    for each in committed(overlay):
        each.update(image, version)
        click.echo(f"{each.file}: version {version}")


if __name__ == "__main__":
    try:
        cli(prog_name="python -m tfx_edge.kubeflow.manifests")
    except EdgeError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
