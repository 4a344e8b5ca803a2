"""The same model and plan give the same bundle, whoever exports it, where and when; only the manifest's `run` tells them apart."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from export_runs import export_in_run
from exporting import calibration_artifact, files, keras_model, model_artifact, records, run_quantizer, values

from tfx_edge.schemas import Manifest, QuantizationConfig

MANIFEST = "edge/manifest.json"
LABELS = "setosa\nvirginica\nversicolor\n"

# What another process does: another hash seed, folder, time zone, home, user and run.
_ELSEWHERE = """
import sys
from export_runs import export_in_run
export_in_run(sys.argv[1], run="weekly-8f3", number=40)
"""


@dataclass(frozen=True)
class Exports:
    """Two bundles of the same model and plan, and what must be in no file of them."""

    here: dict[str, bytes]
    elsewhere: dict[str, bytes]
    secrets: tuple[str, ...]


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Exports:
    days = _dates()
    here, elsewhere = tmp_path_factory.mktemp("amethyst"), tmp_path_factory.mktemp("obsidian")
    model = model_artifact(here / "trainer", keras_model())
    calibration = calibration_artifact(here / "data", [records(values())])
    run_quantizer(here / "quantizer", model, calibration, QuantizationConfig(scheme="int8", io_type="int8"))
    (here / "labels.txt").write_text(LABELS)
    for name in ("quantizer", "labels.txt"):
        copy = shutil.copytree if (here / name).is_dir() else shutil.copy
        copy(here / name, elsewhere / name)
    export_in_run(str(here), run="nightly-51c", number=3)
    home = elsewhere / "home-of-ophelia"
    (home / "tmp").mkdir(parents=True)
    environment = os.environ | {
        "PYTHONHASHSEED": "4",
        "TZ": "Asia/Kolkata",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "USER": "ophelia",
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", _ELSEWHERE, str(elsewhere)], cwd=home, env=environment, check=True, capture_output=True)
    root = Path(__file__).parents[2]
    places = (
        here.name,
        elsewhere.name,
        str(here.parent),
        str(home),
        str(root),
        str(Path.home()) + "/",
        os.getcwd(),
        "/tmp/",
        "site-packages",
    )
    people = ("ophelia", f"/{getpass.getuser()}/", socket.gethostname())
    return Exports(files(here / "bundle"), files(elsewhere / "bundle"), (*places, *people, *days, *_dates()))


def _dates() -> tuple[str, ...]:
    """Today and this hour as programs write them."""
    now = time.localtime(), time.gmtime()
    return (
        *(time.strftime(form, at) for at in now for form in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%b %d", "%d %b")),
        str(int(time.time()))[:7],
    )


def test_all_files_but_the_manifest_are_the_same_bytes(exports: Exports) -> None:
    assert {"Format-Serving/tflite", "edge/golden.npz", MANIFEST} <= exports.here.keys()
    assert exports.here.keys() == exports.elsewhere.keys()
    assert [name for name in exports.here if exports.here[name] != exports.elsewhere[name]] == [MANIFEST]


def test_the_manifests_differ_in_the_run_alone_and_tell_it(exports: Exports) -> None:
    here, elsewhere = (Manifest.from_json(bundle[MANIFEST]) for bundle in (exports.here, exports.elsewhere))
    assert here.model_copy(update={"run": elsewhere.run}).to_json() == elsewhere.to_json()
    assert (here.run.run_id, here.run.execution_id, elsewhere.run.run_id, elsewhere.run.execution_id) == (
        "nightly-51c",
        "3",
        "weekly-8f3",
        "40",
    )
    assert here.run.input_artifacts == {"float_model": (4,), "quantization_plan": (5,)}
    assert here.labels == tuple(LABELS.split())


def test_no_path_host_user_or_date_is_in_any_file(exports: Exports) -> None:
    found = [
        (name, secret)
        for bundle in (exports.here, exports.elsewhere)
        for name, content in _inside(bundle)
        for secret in exports.secrets
        if secret.encode() in content
    ]
    assert found == []


def test_a_path_in_an_archive_would_be_found() -> None:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"from /home/ophelia " * 9)
    assert any(b"ophelia" in content for _, content in _inside({"golden.npz": packed.getvalue()}))
    assert not any(b"ophelia" in content for _, content in [("golden.npz", packed.getvalue())])


def test_archives_hold_no_dates(exports: Exports) -> None:
    entries = [entry for content in exports.here.values() if _is_zip(content) for entry in zipfile.ZipFile(BytesIO(content)).infolist()]
    assert len(entries) > 1 and {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}


def _inside(bundle: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """The files, and what is packed in them."""
    for name, content in bundle.items():
        yield name, content
        if _is_zip(content):
            with zipfile.ZipFile(BytesIO(content)) as archive:
                yield from ((f"{name}/{entry}", archive.read(entry)) for entry in archive.namelist())


def _is_zip(content: bytes) -> bool:
    return zipfile.is_zipfile(BytesIO(content))
