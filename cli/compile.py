"""`tfx-edge compile`: a TFX pipeline to a package for Kubeflow Pipelines."""

import importlib.util
import os
import sys
import warnings
from pathlib import Path

import click

from tfx_edge.cli.options import JSON, pairs, tell
from tfx_edge.schemas import EdgeError


def _quieten() -> None:
    """No greetings of TensorFlow's and Google's libraries, nor TFX's warning of a key in an image's name that it doesn't look up."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"google\.")
    from absl import logging

    logging.set_verbosity(logging.ERROR)


@click.command()
@click.argument("function", metavar="MODULE:FUNCTION")
@click.option("--image", help="Image of every component, best with its digest. Overrides the environment's.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="An environment's file, a KubeflowConfig as YAML.")
@click.option("--arg", "arguments", multiple=True, callback=pairs, metavar="NAME=VALUE", help="An argument of FUNCTION; repeatable.")
@click.option("--target", type=click.Choice(["kfp", "vertex"]), default="kfp", show_default=True, help="Open-source KFP 2, or Vertex AI.")
@click.option("--manifest", is_flag=True, help="Write the Kubernetes resources Pipeline and PipelineVersion instead; needs --version.")
@click.option("--version", help="With --manifest: the version's name, such as the git commit.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@JSON
def compile(  # the command's name
    function: str,
    image: str | None,
    config_file: Path | None,
    arguments: dict[str, str],
    target: str,
    manifest: bool,
    version: str | None,
    output: Path,
    as_json: bool,
) -> None:
    """Compile the pipeline that FUNCTION makes.

    Arguments of FUNCTION that have no default and get no value become inputs of the pipeline, which each run sets.

    Example: tfx-edge compile tfx_edge.pipelines.digits:create_pipeline --image registry/edge@sha256:... -o package.yaml
    """
    if importlib.util.find_spec("tfx") is None:
        raise EdgeError("tfx-edge compile: TFX is not installed; pip install 'tfx-edge[tfx]'")
    if manifest != (version is not None) or (manifest and target != "kfp"):
        raise click.UsageError("--manifest and --version go together, with --target kfp")
    _quieten()
    from tfx_edge.kubeflow import package
    from tfx_edge.kubeflow.compile.compiler import Target, compile_pipeline
    from tfx_edge.schemas import KubeflowConfig

    config = package.read_config(config_file) if config_file else KubeflowConfig()
    sys.path.insert(0, "")  # as `python -m` does: a project's own modules
    chosen: Target = "vertex" if target == "vertex" else "kfp"
    text = compile_pipeline(function, config, image=image, arguments=arguments, target=chosen, version=version)
    package.write(output, text)
    if "@sha256:" not in (image or config.image or ""):
        click.echo("note: the image has no digest, so its content may change under its name, and cached results with it", err=True)
    size = len(text.encode())
    tell(as_json, f"{output}: {size} bytes", output=str(output), bytes=size, target=target)
