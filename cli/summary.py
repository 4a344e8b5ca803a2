"""What a run of an edge pipeline came to, read from its artifacts, and as a table."""

from dataclasses import dataclass
from pathlib import Path

from tfx_edge.schemas import EdgeError, GateReport, Manifest, SparsityReport


@dataclass(frozen=True)
class RunSummary:
    """The figures of one run.

    Attributes:
        report: the gate's.
        manifest: of the edge model.
        sparsity: of the pruned model; None without a Pruner, or where it took out filters.
        pushed: the channel that offers the model; None if it isn't published.
        version: number of its release there.
    """

    report: GateReport
    manifest: Manifest
    sparsity: SparsityReport | None
    pushed: Path | None
    version: int | None = None


def read_summary(metadata_db: Path, pipeline_name: str) -> RunSummary:
    """Reads the latest run's artifacts.

    Raises:
        EdgeError: the channel that the metadata says the model went to is gone, or doesn't verify.
    """
    from tfx_edge.pipelines.runs import latest_outputs

    outputs = latest_outputs(metadata_db, pipeline_name)
    pushed = outputs["EdgePromoter", "pushed_model"].properties
    destination = Path(pushed["pushed_destination"]) if pushed.get("pushed") else None
    if destination is not None:
        _check(destination, metadata_db.parent)
    report = Path(outputs["EdgeValidator", "report"].uri) / "report.json"
    manifest = Path(outputs["TFLiteExporter", "model"].uri) / "edge" / "manifest.json"
    pruned = outputs.get(("Pruner", "model"))
    sparsity = Path(pruned.uri) / "sparsity.json" if pruned else None
    return RunSummary(
        GateReport.from_json(report.read_bytes()),
        Manifest.from_json(manifest.read_bytes()),
        SparsityReport.from_json(sparsity.read_bytes()) if sparsity is not None and sparsity.is_file() else None,
        destination,
        int(pushed["pushed_version"]) if destination is not None else None,
    )


def _check(channel: Path, root: Path) -> None:
    from tfx_edge.release.channel import open_channel, verify_files
    from tfx_edge.release.errors import ChannelError
    from tfx_edge.release.storage import LocalStorage

    try:
        verify_files(open_channel(LocalStorage(channel.parent), channel.name))
    except ChannelError as error:
        raise EdgeError(f"{error}; the metadata says the model was published there: remove {root} and run again") from None


def render(summary: RunSummary, seconds: float) -> None:
    """Prints the table and the verdict."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table("", "float", summary.manifest.scheme, "difference")
    for metric in summary.report.metrics:
        if metric.slice == "Overall" and metric.baseline is not None and metric.candidate is not None:
            table.add_row(metric.metric, f"{metric.baseline:.4f}", f"{metric.candidate:.4f}", f"{metric.candidate - metric.baseline:+.4f}")
    for name, before, after in (
        ("size, bytes", summary.report.baseline_size_bytes, summary.report.size_bytes),
        ("size gzipped, bytes", summary.report.baseline_gzip_bytes, summary.report.gzip_bytes),
    ):
        if before is not None and after is not None:
            table.add_row(name, f"{before:,}", f"{after:,}", f"{before / after:.1f} times smaller")
    if summary.sparsity is not None:
        table.add_row("sparsity of pruned layers", "", f"{summary.sparsity.sparsity:.1%}", "")
    console.print(table)
    console.print(f"verdict   {'BLESSED' if summary.report.blessed else 'NOT BLESSED'}")
    for reason in summary.report.reasons:
        console.print(f"          {reason}", soft_wrap=True)
    published = "nothing" if summary.pushed is None else f"release {summary.version} in {summary.pushed}"
    console.print(f"published {published}", soft_wrap=True)
    console.print(f"time      {seconds:.0f} s")
