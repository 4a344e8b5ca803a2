"""`tfx-edge quantize`: a bundle out of a SavedModel, without a pipeline."""

import tempfile
from pathlib import Path
from typing import get_args

import click

from tfx_edge.cli.needs import require_tfx
from tfx_edge.cli.noise import noise_to
from tfx_edge.cli.options import example_files
from tfx_edge.schemas import AccuracyTarget, CalibrationConfig, EdgeError, ExportConfig, QuantizationConfig, Threshold
from tfx_edge.schemas.schemes import Scheme

_HELD_OUT = "held_out"


@click.command()
@click.argument("saved_model", type=click.Path(path_type=Path))
@click.option("--examples", multiple=True, required=True, help="TFRecord files of tf.Examples: a file, a folder or a pattern; repeatable.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of the bundle.")
@click.option("--scheme", type=click.Choice(get_args(Scheme)), default="int8", show_default=True, help="Of weights and activations.")
@click.option(
    "--io-type", type=click.Choice(["float32", "int8", "int16"]), default="float32", show_default=True, help="Of in- and outputs."
)
@click.option("--num-examples", type=click.IntRange(min=1), default=200, show_default=True, help="Examples for activation ranges.")
@click.option("--accuracy-target", type=click.FloatRange(min=0), help="Look for the smallest model that loses no more: 0.01 is one point.")
@click.option("--metric", default="SparseCategoricalAccuracy", show_default=True, help="With --accuracy-target: a metric of Keras.")
@click.option("--label", help="With --accuracy-target: the feature that holds the label.")
@click.option("--held-out", multiple=True, help="With --accuracy-target: files to measure on, like --examples.")
@click.option("--name", default="", help="Of the model, for its manifest.")
@click.option("--description", default="", help="For the manifest.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as one JSON document.")
def quantize(
    saved_model: Path,
    examples: tuple[str, ...],
    output: Path,
    scheme: Scheme,
    io_type: str,
    num_examples: int,
    accuracy_target: float | None,
    metric: str,
    label: str | None,
    held_out: tuple[str, ...],
    name: str,
    description: str,
    as_json: bool,
) -> None:
    """Quantize SAVED_MODEL into a bundle: the flatbuffer, its manifest, and golden vectors, as Quantizer and TFLiteExporter make it.

    The examples hold the model's inputs by name, as the model takes them.

    Example: tfx-edge quantize saved_model --examples train.tfrecord.gz -o bundle
    """
    require_tfx("quantize")
    target = None
    if accuracy_target is not None:
        if label is None or not held_out:
            raise EdgeError("--accuracy-target measures candidates; give --label, and --held-out with examples of their own")
        threshold = Threshold(metric=metric, max_drop=accuracy_target)
        target = AccuracyTarget(threshold=threshold, label_key=label, split=_HELD_OUT)
    config = QuantizationConfig.model_validate({"scheme": scheme, "io_type": io_type, "accuracy_target": target})
    with tempfile.NamedTemporaryFile(prefix="tfx-edge-", suffix=".log") as log, noise_to(Path(log.name)):
        from tfx_edge.pipelines.standalone.making import quantize

        manifest = quantize(
            saved_model,
            example_files(examples),
            output,
            quantization=config,
            calibration=CalibrationConfig(num_examples=num_examples),
            export=ExportConfig(name=name, description=description),
            held_out=example_files(held_out),
        )
    if as_json:
        click.echo(manifest.to_json(), nl=False)
        return
    smaller = manifest.float_size_bytes / manifest.size_bytes
    click.echo(f"{output}: {manifest.scheme}, {manifest.size_bytes:,} B, {smaller:.1f} times smaller than float; sha256 {manifest.digest}")
