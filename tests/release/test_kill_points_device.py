"""Whatever cuts a device's update short, a verified model runs, and the next update goes on."""

import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest
from device_client import client, device_python
from killing import ends
from release_channels import Fleet, bundle, failing_bundle

SCENARIOS = {"first_install": (40, 8), "update": (40, 8), "failing": (20, 8), "reverting": (13, 1)}
"""How often each is killed, and how often the disk is full."""


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The channel at four times, and a device that is enrolled."""
    folder = tmp_path_factory.mktemp("stages")
    fleet = Fleet(folder / "fleet", now=datetime.now(timezone.utc).replace(microsecond=0)).create("canary")
    device = client(fleet)
    device.enrol(fleet)
    shutil.copytree(device.folder, folder / "device", ignore=shutil.ignore_patterns("device.json"))
    channel = fleet.folder / "channels" / "canary"
    for stage, made in {"one": bundle(1), "two": bundle(2)}.items():
        fleet.publish(made)
        shutil.copytree(channel, folder / stage)
    shutil.copytree(folder / "one", channel, dirs_exist_ok=True)  # the failing release is number 2 as well
    fleet.publish(failing_bundle(3))
    shutil.copytree(channel, folder / "failing")
    shutil.rmtree(channel)
    shutil.copytree(folder / "two", channel)
    for seed in (4, 5):
        fleet.publish(bundle(seed))
    shutil.copytree(channel, folder / "three")
    return folder


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_device_runs_a_verified_model_however_an_update_ends(stages: Path, scenario: str) -> None:
    kills, fills = SCENARIOS[scenario]
    found = ends(device_python(), "killed_devices", scenario, kills=kills, fills=fills, STAGES=str(stages))
    kinds = [end["end"].split()[0] for end in found]
    assert kinds.count("kill") == kills and kinds.count("full") == fills and kinds.count("power") > 5, kinds
    wrong = [end for end in found if end["wrong"]]
    assert not wrong, f"{len(wrong)} of {len(found)}; the first: {wrong[0]['end']}\n{wrong[0]['wrong']}"
