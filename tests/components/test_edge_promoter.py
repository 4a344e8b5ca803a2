"""EdgePromoter on artifacts built by hand: what it publishes, what it refuses, and what it tells of where a release comes from."""

import json
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from release_channels import Fleet, bundle, contents, exported, judged_files
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from tfx_edge.components import keys
from tfx_edge.components.edge_promoter.component import EdgePromoter
from tfx_edge.components.edge_promoter.executor import Executor
from tfx_edge.components.edge_promoter.storage import FileioStorage
from tfx_edge.components.lineage import folder_digest
from tfx_edge.release.bundle import BOM, Bundle
from tfx_edge.release.channel import open_channel, verify_files
from tfx_edge.release.errors import ChannelBusyError, ChannelError
from tfx_edge.release.storage import LocalStorage
from tfx_edge.schemas import (
    ChannelPolicy,
    Cohort,
    ConfigError,
    EdgeError,
    GateConfig,
    GateReport,
    KeyReference,
    Keyring,
    Manifest,
    MetricComparison,
    PromotionConfig,
    Threshold,
)
from tfx_edge.schemas.artifact_types import EdgeReport
from tfx_edge.schemas.release import MANIFEST


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path).create("canary")


def config(fleet: Fleet, **options: Any) -> PromotionConfig:
    return PromotionConfig(**{"channels": str(fleet.folder / "channels"), "keyring": str(fleet.folder / "keys" / "keyring.json")} | options)


def artifact(kind: Any, folder: Path, number: int = 0) -> Any:
    made = kind()
    folder.mkdir(parents=True, exist_ok=True)
    made.uri, made.id = str(folder), number
    return made


def promoted(
    folder: Path, settings: PromotionConfig, made: Any = None, *, blessed: int = 1, infra: int | None = None, **inputs: Any
) -> Any:
    """Runs the executor on a bundle whose blessing says yes or no, and returns the PushedModel."""
    model = artifact(standard_artifacts.Model, folder / "model", 1)
    if not (folder / "model" / "edge").exists():
        exported(folder / "model", made or bundle(1))
    blessing = artifact(standard_artifacts.ModelBlessing, folder / "blessing", 2)
    blessing.set_int_custom_property("blessed", blessed)
    blessing.set_string_custom_property("current_model", model.uri)
    pushed = artifact(standard_artifacts.PushedModel, folder / "pushed_model", 3)
    given = {keys.MODEL: [model], keys.MODEL_BLESSING: [blessing], **inputs}
    if infra is not None:
        given[keys.INFRA_BLESSING] = [artifact(standard_artifacts.InfraBlessing, folder / "infra", 4)]
        given[keys.INFRA_BLESSING][0].set_int_custom_property("blessed", infra)
    Executor().Do({key: value for key, value in given.items() if value}, {keys.PUSHED_MODEL: [pushed]}, {keys.CONFIG: settings.to_json()})
    return pushed


def properties(pushed: Any) -> tuple[int, str, str]:
    return (
        pushed.get_int_custom_property("pushed"),
        pushed.get_string_custom_property("pushed_destination"),
        pushed.get_string_custom_property("pushed_version"),
    )


def test_a_blessed_model_becomes_a_release_and_the_artifact_is_as_a_pushers(fleet: Fleet, tmp_path: Path) -> None:
    pushed = promoted(tmp_path / "run", config(fleet, cohort=Cohort(regions=("eu",))))
    assert properties(pushed) == (1, str(tmp_path / "channels" / "canary"), "1")
    assert (Path(pushed.uri) / "tflite").read_bytes() == bundle(1).files["tflite"]
    channel = fleet.open()
    verify_files(channel)
    [release] = channel.index.releases
    assert release.bundle == bundle(1).digest and release.cohort.regions == ("eu",)
    assert {file.path for file in release.files} == {*bundle(1).files, BOM}


@pytest.mark.parametrize(("blessed", "infra"), [(0, None), (0, 1), (1, 0)])
def test_what_any_blessing_refuses_isnt_published_and_is_no_failure(fleet: Fleet, tmp_path: Path, blessed: int, infra: int | None) -> None:
    before = contents(tmp_path / "channels")
    pushed = promoted(tmp_path / "run", config(fleet), blessed=blessed, infra=infra)
    assert properties(pushed) == (0, "", "") and contents(tmp_path / "channels") == before
    assert list(Path(pushed.uri).iterdir()) == []


def test_an_infra_blessing_alone_is_enough_and_none_at_all_isnt(fleet: Fleet, tmp_path: Path) -> None:
    assert properties(promoted(tmp_path / "none", config(fleet), **{keys.MODEL_BLESSING: []}))[0] == 0
    assert properties(promoted(tmp_path / "infra", config(fleet), infra=1, **{keys.MODEL_BLESSING: []}))[0] == 1


def test_the_config_is_stored_as_json_or_left_to_the_run() -> None:
    wired = {"model": Channel(standard_artifacts.Model), "infra_blessing": Channel(standard_artifacts.InfraBlessing)}
    settings = PromotionConfig(channels="/c", keyring="/k")
    promoter = EdgePromoter(**wired, config=settings)
    assert PromotionConfig.from_json(promoter.exec_properties[keys.CONFIG]) == settings
    assert promoter.outputs[keys.PUSHED_MODEL].type is standard_artifacts.PushedModel
    parameter = RuntimeParameter(name="promotion", ptype=str)
    assert EdgePromoter(**wired, config=parameter).exec_properties[keys.CONFIG] is parameter


def test_it_cant_be_wired_without_a_blessing() -> None:
    model = Channel(standard_artifacts.Model)
    with pytest.raises(EdgeError, match="EdgePromoter without model_blessing or infra_blessing"):
        EdgePromoter(model=model, config=PromotionConfig(channels="/c", keyring="/k"))


@pytest.mark.parametrize("says", [0, 1])
def test_a_blessing_of_another_model_is_an_error_whatever_it_says(fleet: Fleet, tmp_path: Path, says: int) -> None:
    other = artifact(standard_artifacts.ModelBlessing, tmp_path / "other", 9)
    other.set_int_custom_property("blessed", says)
    other.set_string_custom_property("current_model", "/another/model")
    before = contents(tmp_path / "channels")
    with pytest.raises(EdgeError, match="is of the model /another/model; expected"):
        promoted(tmp_path / "run", config(fleet), **{keys.MODEL_BLESSING: [other]})
    assert contents(tmp_path / "channels") == before


def report(folder: Path, model: Path, judged: Bundle, *reasons: str) -> Any:
    made = artifact(EdgeReport, folder, 5)
    made.set_string_custom_property("current_model", str(model))
    document = GateReport(
        blessed=not reasons,
        reasons=reasons,
        model_digest=judged.manifest.digest,
        files=judged_files(judged),
        config=GateConfig(label_key="y", thresholds=(Threshold(metric="SparseCategoricalAccuracy", lower_bound=0.5),)),
        metrics=tuple(
            MetricComparison(metric="SparseCategoricalAccuracy", slice=part, examples=9, baseline=0.98, candidate=0.97, difference=-0.01)
            for part in ("Overall", "y=1")
        ),
        size_bytes=10,
        gzip_bytes=9,
        runtime="LiteRT",
    )
    (folder / "report.json").write_text(document.to_json())
    return made


def test_a_model_that_was_changed_after_the_gate_isnt_published(fleet: Fleet, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    judged = report(tmp_path / "report", folder / "model", bundle(1))
    with pytest.raises(EdgeError, match="or the model was changed after the gate"):
        promoted(folder, config(fleet), bundle(2), **{keys.REPORT: [judged]})
    (folder / "model" / "Format-Serving" / "tflite").write_bytes(bundle(1).files["tflite"])
    with pytest.raises(EdgeError, match="the manifest is of a flatbuffer with sha256"):
        promoted(folder, config(fleet), **{keys.REPORT: [judged]})
    assert fleet.open().index.releases == ()


def test_golden_vectors_that_were_changed_after_the_gate_arent_published(fleet: Fleet, tmp_path: Path) -> None:
    judged = report(tmp_path / "report", tmp_path / "run" / "model", bundle(1))
    exported(tmp_path / "run" / "model", bundle(1).with_file("edge/golden.npz", bundle(2).files["edge/golden.npz"]))
    with pytest.raises(EdgeError, match="edge/golden.npz was changed after the gate's report"):
        promoted(tmp_path / "run", config(fleet), **{keys.REPORT: [judged]})
    assert fleet.open().index.releases == ()


def test_a_report_that_says_no_beside_a_blessing_is_an_error(fleet: Fleet, tmp_path: Path) -> None:
    judged = report(tmp_path / "report", tmp_path / "run" / "model", bundle(1), "too slow")
    with pytest.raises(EdgeError, match="the report at .* says no, the blessing yes"):
        promoted(tmp_path / "run", config(fleet), **{keys.REPORT: [judged]})
    assert fleet.open().index.releases == ()


def test_a_model_without_its_files_is_no_edge_model(fleet: Fleet, tmp_path: Path) -> None:
    exported(tmp_path / "run" / "model", bundle(1))
    (tmp_path / "run" / "model" / "edge" / "golden.npz").unlink()
    with pytest.raises(EdgeError, match="has no edge/golden.npz; give EdgePromoter an edge model"):
        promoted(tmp_path / "run", config(fleet))


def test_the_published_manifest_and_the_log_tell_where_the_release_comes_from(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = "registry.example/edge@sha256:" + "7" * 64
    monkeypatch.setenv("TFX_EDGE_IMAGE", image)
    folder = tmp_path / "run"
    examples = artifact(standard_artifacts.Examples, tmp_path / "examples", 6)
    fingerprint = "split:train,num_files:1,total_bytes:9,xor_checksum:1,sum_checksum:1"
    examples.set_string_custom_property("input_fingerprint", f"{fingerprint}\n{fingerprint.replace('train', 'eval')}")
    examples.set_string_custom_property("span", "7")
    baseline = artifact(standard_artifacts.Model, tmp_path / "baseline", 8)
    (tmp_path / "baseline" / "Format-Serving").mkdir()
    (tmp_path / "baseline" / "Format-Serving" / "saved_model.pb").write_bytes(b"graph")
    judged = report(tmp_path / "report", folder / "model", bundle(1))
    promoted(folder, config(fleet), **{keys.REPORT: [judged], keys.BASELINE_MODEL: [baseline], keys.EXAMPLES: [examples]})
    channel = fleet.open()
    [release] = channel.index.releases
    manifest = Manifest.from_json(channel.read(f"bundles/{release.bundle}/{MANIFEST}"))
    provenance = manifest.provenance
    assert provenance is not None and provenance.data is not None and provenance.evaluation is not None
    assert provenance.data.span == 7 and set(provenance.data.fingerprints) == {"train", "eval"}
    assert provenance.data.fingerprints["train"] == fingerprint.removeprefix("split:train,")
    assert provenance.baseline_digest == folder_digest(str(tmp_path / "baseline" / "Format-Serving"))
    assert [metric.slice for metric in provenance.evaluation.metrics] == ["Overall"]
    assert provenance.image == image
    assert provenance.run.input_artifacts[keys.EXAMPLES] == (6,)
    assert channel.log.entries[-1].provenance == provenance
    content = channel.read(f"bundles/{release.bundle}/{BOM}").decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(content) is None
    bom = json.loads(content)
    assert bom["metadata"]["component"]["hashes"][0]["content"] == manifest.digest
    assert Manifest.from_json((folder / "model" / MANIFEST).read_bytes()).provenance is None, "the artifact stays as it is"


def test_the_same_model_again_changes_nothing_and_gets_the_same_version(fleet: Fleet, tmp_path: Path) -> None:
    first = promoted(tmp_path / "monday", config(fleet))
    before = contents(tmp_path / "channels")
    again = promoted(tmp_path / "tuesday", config(fleet))
    assert properties(again) == properties(first) and contents(tmp_path / "channels") == before


def test_a_channels_refusal_is_one_line_and_leaves_it_as_it_was(fleet: Fleet, tmp_path: Path) -> None:
    before = contents(tmp_path / "channels")
    with LocalStorage(tmp_path / "channels").lock("canary/lock"), pytest.raises(ChannelBusyError, match="is changing it"):
        promoted(tmp_path / "run", config(fleet))
    Fleet(tmp_path / "other").create("canary")
    with pytest.raises(ChannelError, match="its first root isn't the one that the keyring trusts"):
        promoted(tmp_path / "run", config(fleet, keyring=str(tmp_path / "other" / "keys" / "keyring.json")))
    with pytest.raises(ChannelError, match="expected a keyring.json"):
        promoted(tmp_path / "run", config(fleet, keyring=str(tmp_path / "nowhere.json")))
    with pytest.raises(ChannelError, match="no channel; make it with"):
        promoted(tmp_path / "run", config(fleet, channel="nightly"))
    assert contents(tmp_path / "channels") == before


def test_channels_and_keys_are_made_where_there_are_none_and_asked_for(tmp_path: Path) -> None:
    settings = PromotionConfig(channels=str(tmp_path / "channels"), keyring=str(tmp_path / "keys" / "keyring.json"), create=True)
    assert properties(promoted(tmp_path / "run", settings))[0] == 1
    names = ("canary", "beta", "stable")
    following = [open_channel(LocalStorage(tmp_path / "channels"), name).policy.promote_to for name in names]
    assert following == ["beta", "stable", None]
    modes = {file.stat().st_mode & 0o777 for file in (tmp_path / "keys").glob("*.pem")}
    assert modes == {0o600}


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_keys_are_never_made_among_the_channels(tmp_path: Path, scheme: str) -> None:
    channels = tmp_path / "channels"
    among = PromotionConfig(channels=f"{scheme}{channels}", keyring=str(channels / "keys" / "keyring.json"), create=True)
    with pytest.raises(ChannelError, match="keys among the channels"):
        promoted(tmp_path / "run", among)
    assert not channels.exists()
    with pytest.raises(ConfigError, match="expected a path on the machine that runs EdgePromoter"):
        PromotionConfig(channels="gs://fleet/channels", keyring="gs://fleet/keyring.json", create=True)


def test_rules_of_channels_that_arent_made_here_are_refused() -> None:
    paths = {"channels": "/c", "keyring": "/k", "channel": "lab"}
    assert PromotionConfig(**paths, create=True, policies={"lab": ChannelPolicy()}).policies
    with pytest.raises(ConfigError, match="policies are for channels that create makes"):
        PromotionConfig(**paths, policies={"lab": ChannelPolicy()})
    with pytest.raises(ConfigError, match="policies of 'canry'; create makes canary, beta, stable"):
        PromotionConfig(**paths | {"channel": "beta"}, create=True, policies={"canry": ChannelPolicy()})
    with pytest.raises(ConfigError, match="policies of 'canary'; create makes lab"):
        PromotionConfig(**paths, create=True, policies={"canary": ChannelPolicy()})


def test_channels_behind_a_url_get_releases_as_a_folder_does(tmp_path: Path) -> None:
    url = f"ram://{tmp_path.name}/channels"
    settings = PromotionConfig(channels=url, keyring=str(tmp_path / "keys" / "keyring.json"), create=True)
    first = promoted(tmp_path / "monday", settings)
    assert properties(first) == (1, f"{url}/canary", "1")
    storage = FileioStorage(url)
    before = {path: storage.read(path) for path in storage.list("")}
    assert properties(promoted(tmp_path / "tuesday", settings)) == properties(first)
    with storage.lock("canary/lock"), pytest.raises(ChannelBusyError, match="is changing it"):
        promoted(tmp_path / "busy", settings, bundle(2))
    assert {path: storage.read(path) for path in storage.list("")} == before
    assert properties(promoted(tmp_path / "wednesday", settings, bundle(2))) == (1, f"{url}/canary", "2")
    verify_files(open_channel(storage, "canary"))


def test_a_keyring_in_the_config_signs_from_the_environment(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    references = {}
    for role in ("targets", "snapshot", "timestamp"):
        monkeypatch.setenv(f"{role.upper()}_KEY", (tmp_path / "keys" / f"canary-{role}.pem").read_text())
        references[role] = [KeyReference(uri=f"env:{role.upper()}_KEY")]
    settings = config(fleet, keyring=Keyring(**references, roots=fleet.keyring.roots))
    assert properties(promoted(tmp_path / "run", settings))[0] == 1
    assert "PRIVATE" not in settings.to_json()
