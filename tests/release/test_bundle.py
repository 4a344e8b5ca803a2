"""The files of an edge model that devices get, and what identifies them."""

import hashlib
from pathlib import Path

import pytest
from release_channels import bundle, exported, plain_bundle

from tfx_edge.release.bundle import BOM, bundle_of, read_bundle
from tfx_edge.release.errors import ChannelError
from tfx_edge.schemas import Provenance, RunInfo


def test_an_exported_model_is_read_with_every_file_beside_it(tmp_path: Path) -> None:
    made = plain_bundle(1).with_file("edge/model.cc", b"int x;").with_file("edge/deep/er.json", b"{}")
    folder = exported(tmp_path, made)
    (folder / "unrelated.txt").write_bytes(b"not beside")
    read = read_bundle(folder)
    assert read == made and read.digest == made.digest
    assert [entry.path for entry in read.entries] == [
        "edge/deep/er.json",
        "edge/golden.npz",
        "edge/manifest.json",
        "edge/model.cc",
        "tflite",
    ]
    for entry in read.entries:
        content = made.files[entry.path]
        assert (entry.digest, entry.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))


@pytest.mark.parametrize("missing", ["Format-Serving/tflite", "edge/manifest.json", "edge/golden.npz"])
def test_what_a_device_needs_and_isnt_there_is_named(tmp_path: Path, missing: str) -> None:
    (exported(tmp_path, plain_bundle(1)) / missing).unlink()
    with pytest.raises(ChannelError, match=rf"{missing}: missing; expected a folder as TFLiteExporter writes it"):
        read_bundle(tmp_path)


@pytest.mark.parametrize("linked", ["Format-Serving/tflite", "edge/golden.npz", "edge"])
def test_a_link_could_bring_anything_and_is_refused(tmp_path: Path, linked: str) -> None:
    folder, elsewhere = exported(tmp_path / "model", plain_bundle(1)), tmp_path / "elsewhere"
    (folder / linked).rename(elsewhere)
    (folder / linked).symlink_to(elsewhere)
    with pytest.raises(ChannelError, match=rf"{linked}: is a link"):
        read_bundle(folder)


def test_a_manifest_that_cant_be_read_is_one_line(tmp_path: Path) -> None:
    (exported(tmp_path, plain_bundle(1)) / "edge" / "manifest.json").write_text("{}")
    with pytest.raises(ChannelError, match=r"edge/manifest\.json: Manifest\.description: missing") as error:
        read_bundle(tmp_path)
    assert len(str(error.value).splitlines()) == 1


def test_where_a_bundle_comes_from_doesnt_change_what_it_is() -> None:
    one = plain_bundle(1)
    told = one.with_provenance(Provenance(run=RunInfo(run_id="monday"))).with_file(BOM, b"{}")
    assert told.digest == one.digest and told.entries != one.entries
    assert bundle_of(told.files, "read again").digest == one.digest


def test_whatever_a_device_uses_changes_what_it_is() -> None:
    one = plain_bundle(1)
    renamed = {("edge/b" if path == "edge/golden.npz" else path): content for path, content in one.files.items()}
    others = [
        one.with_file("edge/golden.npz", b"other"),
        one.with_file("edge/more", b""),
        plain_bundle(1, minimum_runtime="2.9.0"),
        bundle(1),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 5
    assert bundle_of(renamed, "renamed").digest != one.digest
