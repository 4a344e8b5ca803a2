"""`tfx-edge channel publish|promote|rollback|stop|expire`: what a channel offers."""

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfx_edge.cli.channel.options import (
    CHANNELS,
    KEYRING,
    NAME,
    REASON,
    RELEASE,
    checked_name,
    keyring_in,
    read_contract,
    read_document,
    show_published,
    storage_of,
)
from tfx_edge.cli.options import JSON
from tfx_edge.schemas import Cohort, Evaluation, GateReport, Provenance

if TYPE_CHECKING:
    from tfx_edge.release.bundle import Bundle

EXIT_RULES = 2
"""The gate, or a channel's rules, said no."""


@click.command()
@CHANNELS
@NAME
@click.argument("bundle", type=click.Path(path_type=Path))
@KEYRING
@click.option("--report", type=click.Path(path_type=Path), required=True, help="report.json of the gate that blessed this model.")
@click.option("--target", "targets", multiple=True, help="For devices of this profile; repeatable. [default: any]")
@click.option("--region", "regions", multiple=True, help="For devices with this tag; repeatable. [default: any]")
@click.option("--min-runtime", help="For devices whose TensorFlow Lite version is this one or newer.")
@click.option("--below-runtime", help="For devices whose TensorFlow Lite version is older than this one.")
@REASON
@JSON
def publish(
    channels: str,
    name: str,
    bundle: Path,
    keyring: Path,
    report: Path,
    targets: tuple[str, ...],
    regions: tuple[str, ...],
    min_runtime: str | None,
    below_runtime: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Publish BUNDLE, a folder as TFLiteExporter writes it, to the channel NAME. EdgePromoter does this in a pipeline.

    The report must bless, else nothing is published and the exit status is 2. It must be of these very files, as EdgeValidator and
    `tfx-edge validate BUNDLE` make it. The same bundle again changes nothing.

    Example: tfx-edge channel publish /srv/channels canary model/ --report report/report.json --keyring /secrets/keyring.json
    """
    from tfx_edge.release.bundle import read_bundle
    from tfx_edge.release.judged import check_judged
    from tfx_edge.release.publish import publish

    cohort = Cohort(targets=targets, regions=regions, minimum_runtime=min_runtime, below_runtime=below_runtime)
    made = read_bundle(bundle)
    judged = read_contract(report, GateReport)
    check_judged(made, judged, str(report), str(bundle))
    if not judged.blessed:
        click.echo(f"not published: {report} doesn't bless it: {judged.reasons[0]}", err=True)
        sys.exit(EXIT_RULES)
    provenance = _provenance(made, judged, read_document(report))
    described = _with_bom(made.with_provenance(provenance))
    keys = keyring_in(keyring)
    published = publish(storage_of(channels), name, described, keys, cohort=cohort, provenance=provenance, reason=reason)
    show_published(published, as_json, "published")


def _provenance(made: "Bundle", judged: GateReport, content: bytes) -> Provenance:
    import hashlib

    metrics = tuple(metric for metric in judged.metrics if metric.slice == "Overall")
    evaluation = Evaluation(report_digest=hashlib.sha256(content).hexdigest(), metrics=metrics)
    return Provenance(run=made.manifest.run, baseline_digest=made.manifest.source_model_digest, evaluation=evaluation)


def _with_bom(made: "Bundle") -> "Bundle":
    """With a bill of materials where the library for it is installed, as it is with the extra `tfx`."""
    if importlib.util.find_spec("cyclonedx") is None:
        return made
    from tfx_edge.release.bom import bill_of_materials
    from tfx_edge.release.bundle import BOM
    from tfx_edge.release.channel import utc_now

    return made.with_file(BOM, bill_of_materials(made, utc_now()))


@click.command()
@CHANNELS
@click.argument("source", callback=checked_name)
@click.argument("destination", callback=checked_name)
@KEYRING
@RELEASE
@click.option("--force", is_flag=True, help="Pass over the source's rules; needs --reason.")
@REASON
@JSON
def promote(
    channels: str, source: str, destination: str, keyring: Path, release: int | None, force: bool, reason: str, as_json: bool
) -> None:
    """Publish a release of the channel SOURCE in the channel DESTINATION as well, now. `tick` does so by the rules.

    Exit status 2 where the rules of SOURCE hold it back.

    Example: tfx-edge channel promote /srv/channels canary beta --keyring /secrets/keyring.json
    """
    from tfx_edge.release.promote import NotReadyError, promote

    try:
        published = promote(storage_of(channels), source, destination, keyring_in(keyring), release=release, force=force, reason=reason)
    except NotReadyError as error:
        click.echo(f"not promoted: {error}", err=True)
        sys.exit(EXIT_RULES)
    show_published(published, as_json, f"promoted from {source}")


@click.command()
@CHANNELS
@NAME
@KEYRING
@RELEASE
@click.option("--to", type=click.IntRange(min=1), help="Number of the release to go back to. [default: the one before]")
@REASON
@JSON
def rollback(channels: str, name: str, keyring: Path, release: int | None, to: int | None, reason: str, as_json: bool) -> None:
    """Go back to the model of an older release, at once and for all devices of the newer one. It comes under a new number.

    Example: tfx-edge channel rollback /srv/channels stable --keyring /secrets/keyring.json --reason "wrong labels"
    """
    from tfx_edge.release.rollback import rollback

    published = rollback(storage_of(channels), name, keyring_in(keyring), release=release, to=to, reason=reason)
    show_published(published, as_json, f"takes back release {published.release.rollback_of}")


@click.command()
@CHANNELS
@NAME
@KEYRING
@RELEASE
@REASON
@JSON
def stop(channels: str, name: str, keyring: Path, release: int | None, reason: str, as_json: bool) -> None:
    """Take a release off the channel NAME for good, and with the next `tick` off the channels after it.

    Devices go back to the model before it, where there was one. `tick` does this by itself once too many devices fail.

    Example: tfx-edge channel stop /srv/channels canary --keyring /secrets/keyring.json --reason "crashes on v2 boards"
    """
    from tfx_edge.release.rollback import stop

    back = stop(storage_of(channels), name, keyring_in(keyring), release=release, reason=reason)
    if back is not None:
        show_published(back, as_json, f"takes back release {back.release.rollback_of}")
    elif as_json:
        click.echo("null")
    else:
        click.echo(f"{name}: stopped; there is no release before it, so devices that took it keep it until a newer one comes")


@click.command()
@CHANNELS
@NAME
@KEYRING
@click.option("--release", type=click.IntRange(min=1), help="Number of the one to withdraw.")
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Withdraw those that were published longer ago.")
@REASON
@JSON
def expire(channels: str, name: str, keyring: Path, release: int | None, older_than: float | None, reason: str, as_json: bool) -> None:
    """Withdraw releases that newer ones have replaced, with their files; a rollback can't bring them back then.

    Example: tfx-edge channel expire /srv/channels stable --older-than 90 --keyring /secrets/keyring.json
    """
    from tfx_edge.release.expire import expire

    gone = expire(storage_of(channels), name, keyring_in(keyring), release=release, older_than_days=older_than, reason=reason)
    if as_json:
        click.echo("[" + ", ".join(str(one.number) for one in gone) + "]")
        return
    numbers = ", ".join(str(one.number) for one in gone)
    click.echo(f"{name}: withdrawn: release {numbers}; files go with the next change" if gone else f"{name}: nothing to withdraw")
