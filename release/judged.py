"""Whether a bundle is the very one that the gate judged: nothing that reaches devices may have changed since."""

import hashlib

from tfx_edge.release.bundle import Bundle
from tfx_edge.release.errors import ChannelError
from tfx_edge.schemas.gate_report import GateReport
from tfx_edge.schemas.release import MODEL


def check_judged(bundle: Bundle, report: GateReport, report_name: str, model_name: str) -> None:
    """Refuses a bundle of which a file isn't as it was when the gate looked at it, whatever the verdict.

    Golden vectors and manifest decide what a device takes for a good model, so they count as the flatbuffer does.

    Args:
        bundle: as it was exported, before a release adds anything to it.
        report: of the gate.
        report_name: where the report is, for messages.
        model_name: where the bundle is, for messages.

    Raises:
        ChannelError: the report is of another model, names no files, or a file was changed, added or removed.
    """
    if report.model_digest != bundle.manifest.digest:
        raise ChannelError(
            f"{report_name}: judged a flatbuffer with sha256 {report.model_digest}; that of {model_name} has "
            f"{bundle.manifest.digest}: it is another's report, or the model was changed after the gate"
        )
    found = {path: hashlib.sha256(content).hexdigest() for path, content in bundle.files.items() if path != MODEL}
    if not report.files:
        raise ChannelError(
            f"{report_name}: judged the flatbuffer of {model_name} alone, not {', '.join(sorted(found))}; validate the folder that has them"
        )
    for path in sorted(found.keys() | report.files.keys()):
        if found.get(path) != report.files.get(path):
            did = "was added" if path not in report.files else "is gone" if path not in found else "was changed"
            raise ChannelError(f"{model_name}: {path} {did} after the gate's report {report_name}; validate the model as it is now")
