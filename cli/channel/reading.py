"""`tfx-edge channel status` and `log`."""

import sys
from typing import TYPE_CHECKING

import click

from tfx_edge.cli import EXIT_ERROR
from tfx_edge.cli.channel.options import CHANNELS, NAME, plain, show, storage_of
from tfx_edge.cli.options import JSON

if TYPE_CHECKING:
    from tfx_edge.schemas import ChannelStatus, LogEntry


@click.command()
@CHANNELS
@NAME
@JSON
def status(channels: str, name: str, as_json: bool) -> None:
    """Verify the channel NAME with all of its files, and show what it offers, what the rules wait for, and when signatures end.

    Exit status 1 where a signature has ended, which devices take for a frozen channel.

    Example: tfx-edge channel status /srv/channels canary
    """
    from tfx_edge.release.status import status

    found = status(storage_of(channels), name)
    if as_json:
        show(found)
    else:
        _render_status(found)
    if found.expired:
        sys.exit(EXIT_ERROR)


def _render_status(found: "ChannelStatus") -> None:
    ended = f", but devices refuse it: {', '.join(found.expired)} expired; run `tfx-edge channel tick`" if found.expired else ""
    click.echo(f"{found.channel}: verified{ended}" + (f"; promotes to {found.promote_to}" if found.promote_to else ""))
    for one in found.releases:
        cohort = one.cohort.model_dump_json(exclude_defaults=True)
        back = f", takes back {one.rollback_of}" if one.rollback_of else ""
        click.echo(
            f"release {one.number:<3} {one.model}, bundle {one.bundle[:12]}, of {one.published:%Y-%m-%d %H:%M}{back}\n"
            f"            for {one.share:.0%} of {'all devices' if cohort == '{}' else f'the devices {cohort}'}; "
            f"{one.healthy} healthy, {one.failed} failed\n"
            f"            {one.rules}"
        )
    if not found.releases:
        click.echo("offers nothing")
    for role in found.roles:
        ends = f"{'EXPIRED' if role.expired else 'until'} {role.expires:%Y-%m-%d %H:%M}"
        keys = ", ".join(key[:16] for key in role.keys)
        click.echo(f"{role.role:<10} version {role.version}, {ends}, {role.threshold} of {keys}")
    for path, why in found.refused_reports.items():
        click.echo(plain(f"refused    {path}: {why}"))


@click.command()
@CHANNELS
@NAME
@JSON
def log(channels: str, name: str, as_json: bool) -> None:
    """Show who did what to the channel NAME: from which run a release came, and with which metrics.

    Example: tfx-edge channel log /srv/channels canary
    """
    from tfx_edge.release.channel import open_channel

    found = open_channel(storage_of(channels), name).log
    if as_json:
        show(found)
        return
    for entry in found.entries:
        click.echo(plain(f"{entry.time:%Y-%m-%d %H:%M:%S} {entry.who} {_what(entry)}"))
        for line in _details(entry):
            click.echo(plain(f"    {line}"))


def _what(entry: "LogEntry") -> str:
    release = entry.release
    text: str = entry.action
    if release is not None:
        text += f" release {release.number}, bundle {release.bundle[:12]}, for {release.share:.0%}"
        text += f" (takes back {release.rollback_of})" if release.rollback_of is not None else ""
    return text + (f" from {entry.from_channel}" if entry.from_channel else "") + f", key {entry.key_id[:16]}"


def _details(entry: "LogEntry") -> list[str]:
    lines = [f"reason: {entry.reason}"] if entry.reason else []
    provenance = entry.provenance
    if provenance is None:
        return lines
    run = {"pipeline": provenance.run.pipeline, "run": provenance.run.run_id, "image": provenance.image}
    if provenance.data is not None and provenance.data.span is not None:
        run["span"] = str(provenance.data.span)
    told = ", ".join(f"{key} {value}" for key, value in run.items() if value is not None)
    lines += [told] if told else []
    for metric in provenance.evaluation.metrics if provenance.evaluation is not None else ():
        if metric.candidate is not None:
            float_value = "" if metric.baseline is None else f", float {metric.baseline:.4f}"
            lines.append(f"{metric.metric} {metric.candidate:.4f}{float_value}")
    return lines
