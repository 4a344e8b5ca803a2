"""A bundle is the one that a gate judged only if each of its files is."""

from dataclasses import replace

import pytest
from release_channels import judged_files, plain_bundle

from tfx_edge.release.bundle import Bundle
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.judged import check_judged
from tfx_edge.schemas import GateConfig, GateReport, Threshold


def report_of(judged: Bundle, **changes: object) -> GateReport:
    report = GateReport(
        blessed=True,
        reasons=(),
        model_digest=judged.manifest.digest,
        files=judged_files(judged),
        config=GateConfig(label_key="y", thresholds=(Threshold(metric="AUC", lower_bound=0.5),)),
        metrics=(),
        size_bytes=10,
        gzip_bytes=9,
        runtime="LiteRT",
    )
    return report.model_copy(update=changes)


def without(made: Bundle, path: str) -> Bundle:
    return replace(made, files={name: content for name, content in made.files.items() if name != path})


JUDGED = plain_bundle(1).with_file("edge/model.cc", b"int x;")


def test_the_bundle_as_it_was_judged_passes() -> None:
    check_judged(JUDGED, report_of(JUDGED), "report.json", "model")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (plain_bundle(2), "report.json: judged a flatbuffer with sha256"),
        (JUDGED.with_file("edge/golden.npz", b"easier"), "model: edge/golden.npz was changed after the gate's report report.json"),
        (JUDGED.with_file("edge/manifest.json", b"{}"), "edge/manifest.json was changed"),
        (JUDGED.with_file("edge/run.sh", b""), "edge/run.sh was added"),
        (without(JUDGED, "edge/model.cc"), "edge/model.cc is gone"),
    ],
    ids=["flatbuffer", "golden vectors", "manifest", "added", "gone"],
)
def test_whatever_changed_since_is_refused_and_named(changed: Bundle, said: str) -> None:
    with pytest.raises(ChannelError, match=said):
        check_judged(changed, report_of(JUDGED), "report.json", "model")


def test_a_report_of_the_flatbuffer_alone_says_nothing_of_the_files_beside_it() -> None:
    alone = report_of(JUDGED, files={})
    with pytest.raises(ChannelError, match="judged the flatbuffer of model alone, not edge/golden.npz, edge/manifest.json, edge/model.cc"):
        check_judged(JUDGED, alone, "report.json", "model")
