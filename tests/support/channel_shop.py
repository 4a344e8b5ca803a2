"""`tfx-edge channel` on channels in a folder, with keys beside them and models to publish."""

from pathlib import Path

from click.testing import CliRunner, Result
from release_channels import bundle, exported, judged_files

from tfx_edge.cli import cli
from tfx_edge.release.bundle import Bundle
from tfx_edge.release.channel import Channel, open_channel
from tfx_edge.release.storage import LocalStorage
from tfx_edge.schemas import EdgeError, GateConfig, GateReport, MetricComparison, Threshold


def report(file: Path, judged: Bundle, *reasons: str, **changes: object) -> Path:
    """Writes the gate's report of a bundle, which blesses where there are no reasons."""
    metric = MetricComparison(metric="AUC", slice="Overall", examples=9, baseline=0.98, candidate=0.97, difference=-0.01)
    document = GateReport(
        blessed=not reasons,
        reasons=reasons,
        model_digest=judged.manifest.digest,
        files=judged_files(judged),
        config=GateConfig(label_key="y", thresholds=(Threshold(metric="AUC", lower_bound=0.5),)),
        metrics=(metric,),
        size_bytes=10,
        gzip_bytes=9,
        runtime="LiteRT",
    )
    file.write_text(document.model_copy(update=changes).to_json())
    return file


class Shop:
    """A folder with channels and keys, and models to publish."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.channels, self.keyring = folder, str(folder / "channels"), str(folder / "keys" / "keyring.json")

    def run(self, command: str, *arguments: object, keyring: bool = True) -> Result:
        given = [command, *map(str, arguments), *(["--keyring", self.keyring] if keyring else [])]
        return CliRunner().invoke(cli, ["channel", *given], catch_exceptions=True)

    def did(self, command: str, *arguments: object, keyring: bool = True) -> str:
        result = self.run(command, *arguments, keyring=keyring)
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.output

    def refused(self, command: str, *arguments: object, keyring: bool = True) -> str:
        """The one line of an error."""
        result = self.run(command, *arguments, keyring=keyring)
        assert isinstance(result.exception, EdgeError), result.output + repr(result.exception)
        assert "\n" not in str(result.exception)
        return str(result.exception)

    def publish(self, seed: int, name: str = "canary", *options: object) -> str:
        model = exported(self.folder / f"model-{seed}", bundle(seed))
        judged = report(self.folder / f"report-{seed}.json", bundle(seed))
        return self.did("publish", self.channels, name, model, "--report", judged, *options)

    def open(self, name: str = "canary") -> Channel:
        return open_channel(LocalStorage(self.channels), name)
