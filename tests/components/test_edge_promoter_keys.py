"""EdgePromoter in a pipeline with real metadata: no private key gets into the metadata, the artifacts, the channels, logs or errors."""

import base64
import logging
from collections.abc import Iterable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from release_channels import Fleet, bundle, exported
from tfx.dsl.components.common.importer import Importer
from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline
from tfx.types import standard_artifacts

from tfx_edge.components.edge_promoter.component import EdgePromoter
from tfx_edge.pipelines.runs import latest_outputs
from tfx_edge.schemas import EdgeError, KeyReference, Keyring, PromotionConfig

ROLES = ("targets", "snapshot", "timestamp")


def run(folder: Path, config: PromotionConfig) -> None:
    """A pipeline of a blessed edge model and EdgePromoter; its metadata and artifacts are in `folder`."""
    source = exported(folder / "model", bundle(1))
    model = Importer(source_uri=str(source), artifact_type=standard_artifacts.Model).with_id("exported")
    blessing = Importer(
        source_uri=str(folder / "blessing"),
        artifact_type=standard_artifacts.ModelBlessing,
        custom_properties={"blessed": 1, "current_model": str(source)},
    ).with_id("blessed")
    promoter = EdgePromoter(model=model.outputs["result"], model_blessing=blessing.outputs["result"], config=config)
    LocalDagRunner().run(
        Pipeline(
            pipeline_name="promotion",
            pipeline_root=str(folder / "artifacts"),
            components=[model, blessing, promoter],
            metadata_connection_config=metadata.sqlite_metadata_connection_config(str(folder / "metadata.db")),
        )
    )


def forms(pem: bytes) -> set[bytes]:
    """A private key in every form in which something may print it."""
    seed = serialization.load_pem_private_key(pem, None).private_bytes(
        serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
    )
    body = pem.split(b"-----")[2].strip()
    assert len(body) == 64 and len(seed) == 32
    return {body, base64.b64decode(body), seed, base64.b64encode(seed), seed.hex().encode(), seed.hex().upper().encode()}


def found(needles: Iterable[bytes], folders: Iterable[Path], *texts: str) -> list[str]:
    """Where one of the needles is."""
    contents = {str(file): file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}
    contents |= {f"text {i}": text.encode() for i, text in enumerate(texts)}
    return [where for where, content in contents.items() if any(needle in content for needle in needles)]


def test_keys_in_files_stay_there(tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.DEBUG)
    keyring = tmp_path / "keys" / "keyring.json"
    run(tmp_path / "run", PromotionConfig(channels=str(tmp_path / "channels"), keyring=str(keyring), create=True))
    pushed = latest_outputs(tmp_path / "run" / "metadata.db", "promotion")["EdgePromoter", "pushed_model"]
    assert (pushed.properties["pushed"], pushed.properties["pushed_version"]) == (1, "1")
    pems = [file.read_bytes() for file in keyring.parent.glob("*.pem")]
    needles = set.union(*map(forms, pems))
    texts = (caplog.text, *capfd.readouterr())
    assert len(pems) == 13 and len(found(needles, [keyring.parent])) == 13
    assert found(needles, [tmp_path / "run", tmp_path / "channels"], *texts) == []
    # What may be told is found, so a key would be.
    assert found([str(keyring).encode()], [tmp_path / "run"], *texts) != []
    assert found([b"release 1 published"], [], *texts) != []


def test_keys_in_the_environment_stay_there_even_where_they_dont_fit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    fleet, other = Fleet(tmp_path).create("canary"), Fleet(tmp_path / "other").create("canary")
    references = {role: (KeyReference(uri=f"env:EDGE_{role.upper()}"),) for role in ROLES}
    config = PromotionConfig(channels=str(tmp_path / "channels"), keyring=Keyring(**references, roots=fleet.keyring.roots))
    own, wrong = ({role: (of.folder / "keys" / f"canary-{role}.pem").read_text() for role in ROLES} for of in (fleet, other))
    damaged = {**own, "targets": own["targets"].replace("-----END", "----END")}
    refusals = []
    for attempt, values in (("wrong", wrong), ("damaged", damaged), ("own", own)):
        for role, value in values.items():
            monkeypatch.setenv(f"EDGE_{role.upper()}", value)
        if attempt == "own":
            run(tmp_path / "runs" / attempt, config)
            continue
        with pytest.raises(EdgeError) as refused:
            run(tmp_path / "runs" / attempt, config)
        refusals.append(str(refused.value))
    pushed = latest_outputs(tmp_path / "runs" / "own" / "metadata.db", "promotion")["EdgePromoter", "pushed_model"]
    assert pushed.properties["pushed"] == 1 and [release.number for release in fleet.open().index.releases] == [1]
    assert all("EDGE_TARGETS" in refusal or "targets" in refusal for refusal in refusals), refusals
    assert all(len(refusal.splitlines()) == 1 for refusal in refusals)
    needles = set.union(*(forms(pem.encode()) for pem in (*own.values(), *wrong.values())))
    texts = (caplog.text, *capfd.readouterr(), *refusals)
    assert found(needles, [tmp_path / "runs", tmp_path / "channels"], *texts) == []
    assert found([b"EDGE_TARGETS"], [tmp_path / "runs"]) != []
