"""What a device does, to be cut short by `killing`: whatever it ends with, the device runs a verified model and the next update goes on.

Runs in the device's environment, on channels that a test has made: STAGES/one, two, failing and three are the same channel at four times.
"""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from killing import Scenario, forked

from tfx_edge.device import selftest
from tfx_edge.device.bundle import damage
from tfx_edge.device.client import Device, Outcome
from tfx_edge.device.errors import DeviceError
from tfx_edge.device.store import Version
from tfx_edge.schemas.device import DeviceConfig

_STAGES = Path(os.environ.get("STAGES", "/nowhere"))


def _selftest_in_a_fork(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """The self-test as the client starts it, in a fork of this process, which has LiteRT in memory already: 200 starts take minutes."""
    assert list(command[:3]) == [sys.executable, "-m", "tfx_edge.device.selftest"]

    def work() -> str:
        said, wrong = io.StringIO(), io.StringIO()
        with redirect_stdout(said), redirect_stderr(wrong):
            status = selftest.main(list(command[3:]))
        return json.dumps([status, said.getvalue(), wrong.getvalue()])

    status, told = forked(work)
    assert status == 0, told
    return subprocess.CompletedProcess(command, *json.loads(told))


subprocess.run = _selftest_in_a_fork  # type: ignore[assignment]


def device(folder: Path) -> Device:
    return Device(
        DeviceConfig(
            device_id="device-1",
            channel="canary",
            source=str(folder / "channel"),
            root=str(folder / "root.json"),
            state=str(folder / "state"),
        )
    )


def _stage(name: str, folder: Path) -> None:
    shutil.rmtree(folder / "channel", ignore_errors=True)
    shutil.copytree(_STAGES / name, folder / "channel")


def _start(folder: Path, *stages: str) -> None:
    """A device that has been updated at some stages, and then finds the last one."""
    shutil.copytree(_STAGES / "device", folder, dirs_exist_ok=True)
    for stage in stages[:-1]:
        _stage(stage, folder)
        device(folder).update()
    _stage(stages[-1], folder)


def _runs(folder: Path) -> Version | None:
    version = device(folder)._store.current()
    if version is not None:
        flaw = damage(version.folder, version.release)
        assert flaw is None, f"a model runs that isn't as it was released: {flaw}"
    return version


def _number(folder: Path) -> int | None:
    version = _runs(folder)
    return None if version is None else version.release.number


def _check(folder: Path, before: Path, after: Path) -> None:
    assert _number(folder) in (_number(before), _number(after))


def _went_on(folder: Path, *, told: bool = True) -> None:
    """The next release comes as to any device, and nothing that was cut short is left."""
    _stage("three", folder)
    outcome = device(folder).update()
    assert (outcome.kind, outcome.release, _number(folder)) == ("updated", 4, 4), outcome
    state = folder / "state"
    assert not list(state.rglob(".partial-*")) and not list((state / "downloads").iterdir()), sorted(state.rglob("*"))
    assert not told or sorted((folder / "channel" / "health" / "device-1").iterdir()), "the health report never came"


def _updates_to(number: int | None, kind: str) -> Any:
    def repeat(folder: Path, before: Path, after: Path) -> None:
        outcome = device(folder).update()
        assert outcome.kind in (kind, "current"), outcome
        assert _number(folder) == number
        _went_on(folder)

    return repeat


def _update(folder: Path) -> Outcome:
    return device(folder).update()


first_install = Scenario(lambda folder: _start(folder, "one"), _update, _check, _updates_to(1, "updated"), DeviceError, best_effort=True)
update = Scenario(lambda folder: _start(folder, "one", "two"), _update, _check, _updates_to(2, "updated"), DeviceError, best_effort=True)
failing = Scenario(
    lambda folder: _start(folder, "one", "failing"), _update, _check, _updates_to(1, "refused"), DeviceError, best_effort=True
)


def _damaged(folder: Path) -> None:
    _start(folder, "one", "two", "two")
    flatbuffer = folder / "state" / "current" / "tflite"
    flatbuffer.write_bytes(flatbuffer.read_bytes()[:-1] + b"!")


def _check_reverted(folder: Path, before: Path, after: Path) -> None:
    """The damage came from outside: until it is found, the damaged model is the current one."""
    current = (folder / "state" / "current").resolve().name
    assert current == (before / "state" / "current").resolve().name or _number(folder) == 1


def _repeat_reverted(folder: Path, before: Path, after: Path) -> None:
    device(folder).check()
    assert _number(folder) == 1
    _went_on(folder)


reverting = Scenario(_damaged, lambda folder: device(folder).check(), _check_reverted, _repeat_reverted, DeviceError, best_effort=True)
