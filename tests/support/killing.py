"""Cuts a program short at every step that changes a disk: killed, out of room, or without power.

    python killing.py MODULE SCENARIO FOLDER SEED KILLS FILLS

What a program does to the disk is wrapped from outside (functions of os, and the files that open gives), before the program is imported.
Then the scenario runs again and again in forks of this process, which has imported all and has no threads, each on a fresh copy of the
same folder, and each ends at another step. Prints a JSON list of what was done and what was wrong.
"""

import builtins
import errno
import gc
import importlib
import io
import json
import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Scenario:
    """A program and what must hold however it ends.

    Attributes:
        prepare: makes the folder as it is before.
        operate: the program.
        check: raises where the folder isn't as it may be; gets the folder, and copies of it before and after a run that wasn't cut short.
        repeat: the program once more must succeed after any end, `check` included; it raises where it doesn't.
        refused: the exception, of one line, that the program ends with where the disk is full.
        best_effort: some of what it writes may fail, and the program goes on.
    """

    prepare: Callable[[Path], None]
    operate: Callable[[Path], object]
    check: Callable[[Path, Path, Path], None]
    repeat: Callable[[Path, Path, Path], None]
    refused: type[Exception] = Exception
    best_effort: bool = False


class Step(NamedTuple):
    """Something that a program did to the disk, or is about to do."""

    action: str
    path: str


_NEED_ROOM = ("write", "pwrite", "open", "mkdir")

_SHOWS = ("replace", "rename", "link", "symlink", "unlink", "remove")

Hook = Callable[[Step], Any]


@dataclass
class Watch:
    """Tells each step to the hooks; `below` is where steps count.

    Attributes:
        before: gets the step that is about to be done.
        half: gets a write that is about to be done; returns how the program ends when half of it is done, or None: it doesn't.
        after: gets the step that was done, and its descriptor where it has one.
    """

    below: str = "/nowhere"
    before: Hook = lambda step: None
    half: Hook | None = None
    after: Callable[[Step, int | None], None] = lambda step, descriptor: None
    paused: bool = True

    def around(self, action: str, path: Any, do: Callable[[], Any], descriptor: int | None = None) -> Any:
        name = os.fsdecode(path) if not isinstance(path, int) else os.readlink(f"/proc/self/fd/{path}")
        if self.paused or not os.path.abspath(name).startswith(self.below):
            return do()
        step = Step(action, name)
        with self.pause():
            self.before(step)
        done = do()
        with self.pause():
            self.after(step, descriptor)
        return done

    @contextmanager
    def pause(self) -> Iterator[None]:
        paused, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = paused


WATCH = Watch()
"""The one that the wrapped functions ask."""

_OPEN, _FSTAT = builtins.open, os.fstat


class _File(io.FileIO):
    """A file whose writes are steps."""

    def write(self, content: Any) -> int:
        def do() -> int:
            return super(_File, self).write(content)

        if not WATCH.paused and WATCH.half is not None:
            name = os.readlink(f"/proc/self/fd/{self.fileno()}")
            end = WATCH.half(Step("write", name)) if os.path.abspath(name).startswith(WATCH.below) else None
            if end is not None:
                with WATCH.pause():
                    super().write(bytes(content)[: len(content) // 2])
                end()
        written: int = WATCH.around("write", self.fileno(), do)
        return written

    def truncate(self, size: int | None = None) -> int:
        length: int = WATCH.around("truncate", self.fileno(), lambda: super(_File, self).truncate(size))
        return length


def _open(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: Any = None,
    errors: Any = None,
    newline: Any = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    if WATCH.paused or not set(mode) & set("wax+"):
        return _OPEN(file, mode, buffering, encoding, errors, newline, closefd, opener)
    raw_mode = mode.replace("b", "").replace("t", "")

    def make() -> _File:
        return _File(file, raw_mode, closefd, opener)

    raw = make() if isinstance(file, int) else WATCH.around("open", file, make)
    if buffering == 0:
        return raw
    kind = io.BufferedRandom if "+" in raw_mode else io.BufferedWriter
    buffered = kind(raw)
    return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)


def _wrapped(action: str, original: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function of os; its `place`-th argument names what it changes."""

    def function(*arguments: Any, **options: Any) -> Any:
        named = arguments[place] if len(arguments) > place else options.get("path", options.get("dst"))
        if isinstance(options.get("dir_fd"), int):
            named = os.path.join(os.readlink(f"/proc/self/fd/{options['dir_fd']}"), named)
        if action == "open" and not (arguments[1] if len(arguments) > 1 else options["flags"]) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return original(*arguments, **options)
        descriptor = named if isinstance(named, int) else None
        return WATCH.around(action, named, lambda: original(*arguments, **options), descriptor)

    return function


def watch_everything() -> None:
    """Wraps what changes a disk. To be called before the program is imported."""
    places = {
        "open": 0,
        "write": 0,
        "pwrite": 0,
        "ftruncate": 0,
        "fsync": 0,
        "mkdir": 0,
        "rmdir": 0,
        "unlink": 0,
        "remove": 0,
        "replace": 1,
        "rename": 1,
        "link": 1,
        "symlink": 1,
    }
    accessor = getattr(pathlib, "_NormalAccessor", None)  # Python 3.10 keeps functions of os there
    for name, place in places.items():
        function = _wrapped(name, getattr(os, name), place)
        for supported in (os.supports_dir_fd, os.supports_follow_symlinks):
            if getattr(os, name) in supported:
                supported.add(function)
        setattr(os, name, function)
        if accessor is not None and name != "open" and hasattr(accessor, name):
            setattr(accessor, name, staticmethod(function))
    builtins.open = io.open = _open  # type: ignore[assignment]
    if accessor is not None:
        accessor.open = staticmethod(_open)


@contextmanager
def watching(folder: Path, **hooks: Any) -> Iterator[None]:
    """Tells the hooks the steps below a folder while the block runs."""
    WATCH.before, WATCH.half, WATCH.after = Watch.before, None, Watch.after
    for name, hook in hooks.items():
        setattr(WATCH, name, hook)
    WATCH.below, WATCH.paused = str(folder), False
    try:
        yield
    finally:
        WATCH.paused = True


def forked(work: Callable[[], object]) -> tuple[int, str]:
    """Does the work in a fork of this process: its status as waitpid gives it, and the text that it returned, or what it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            said = work()
            os.write(writing, str(said or "").encode())
            status = 0
        except BaseException:  # noqa: BLE001 - this process ends here, whatever it was
            WATCH.paused = True
            os.write(writing, traceback.format_exc()[-6000:].encode())
        finally:
            os._exit(status)
    os.close(writing)
    with _OPEN(reading, "rb") as stream:
        told = stream.read().decode()
    return os.waitpid(child, 0)[1], told


@dataclass
class Disk:
    """What a power cut would leave of a folder: what was brought to the disk, and nothing else.

    Attributes:
        contents: of files, as of their last fsync, by inode.
        modes: of files, the same.
        entries: of folders, as of their last fsync, by inode: the inode, and whether it is a folder, of each name; a symbolic link's
            target.
    """

    contents: dict[int, bytes] = field(default_factory=dict)
    modes: dict[int, int] = field(default_factory=dict)
    entries: dict[int, dict[str, Any]] = field(default_factory=dict)

    def sync(self, path: str) -> None:
        """A fsync of a file or a folder, of which nothing below is meant."""
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            self.entries[status.st_ino] = self.names(path)
        elif stat.S_ISREG(status.st_mode):
            with _OPEN(path, "rb") as stream:
                self.contents[status.st_ino] = stream.read()
            self.modes[status.st_ino] = stat.S_IMODE(status.st_mode)

    def sync_all(self, folder: str) -> None:
        """All that is there is on the disk."""
        for here, _, files in os.walk(folder):
            for path in [here, *(os.path.join(here, name) for name in files)]:
                self.sync(path)

    def names(self, folder: str) -> dict[str, Any]:
        """The entries that a folder has now."""
        found: dict[str, Any] = {}
        for entry in os.scandir(folder):
            is_folder = entry.is_dir(follow_symlinks=False)
            found[entry.name] = os.readlink(entry.path) if entry.is_symlink() else (entry.inode(), is_folder)
        return found

    def lost(self, folder: str, target: str, *, names_last: bool) -> None:
        """Makes what a power cut leaves of a folder.

        Args:
            folder: as it is now.
            target: where to.
            names_last: names and renames of all kinds are there as they are now, but contents only as they were synced: filesystems may
                write their tables before their files. Otherwise they too are as they were synced.
        """
        os.makedirs(target)
        self._lost(os.stat(folder).st_ino, folder if names_last else None, target)

    def _lost(self, inode: int, now: str | None, target: str) -> None:
        names = self.entries.get(inode, {}) if now is None else self.names(now)
        for name, entry in names.items():
            path = os.path.join(target, name)
            if isinstance(entry, str):
                os.symlink(entry, path)
            elif entry[1]:
                os.mkdir(path)
                self._lost(entry[0], None if now is None else os.path.join(now, name), path)
            else:
                with _OPEN(path, "wb") as stream:
                    stream.write(self.contents.get(entry[0], b""))
                os.chmod(path, self.modes.get(entry[0], 0o600))


@dataclass
class Sweep:
    """Runs a scenario to many ends.

    Attributes:
        scenario: which one.
        folder: for copies; a filesystem in memory is fastest.
        ends: what was done, and what was wrong: nothing, if all is well.
    """

    scenario: Scenario
    folder: Path
    ends: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.before, self.after, self.copy = (self.folder / name for name in ("before", "after", "copy"))
        self.before.mkdir(parents=True)
        self.scenario.prepare(self.before)
        shutil.copytree(self.before, self.copy, symlinks=True)
        self.steps: list[Step] = []

        def run() -> None:
            with watching(self.copy, before=lambda step: self.steps.append(step)):
                self.scenario.operate(self.copy)
            (self.folder / "steps.json").write_text(json.dumps(self.steps))

        status, said = forked(run)
        if status:
            raise RuntimeError(said)
        self.steps = [Step(*step) for step in json.loads((self.folder / "steps.json").read_text())]
        self.copy.rename(self.after)
        gc.freeze()  # so that forks don't copy what is never collected

    def kill(self, seed: int, most: int) -> None:
        """SIGKILL before a step, or with half a write done: above all at what shows under other names, and with half writes."""
        points = [
            (number, half) for number, step in enumerate(self.steps) for half in ((False, True) if step.action == "write" else (False,))
        ]
        decisive = [(number, half) for number, half in points if half or self.steps[number].action in _SHOWS]
        chance = random.Random(seed)
        decisive = chance.sample(decisive, min(len(decisive), most * 3 // 4))
        others = [point for point in points if point not in decisive]
        for number, half in sorted(decisive + chance.sample(others, min(len(others), most - len(decisive)))):
            self._end_at(number, half, "kill", lambda: os.kill(os.getpid(), signal.SIGKILL), lambda status, said: status == signal.SIGKILL)

    def fill(self, seed: int, most: int) -> None:
        """No room from a write on."""
        writes = [number for number, step in enumerate(self.steps) if step.action in _NEED_ROOM]
        refused = self.scenario.refused.__name__

        def full() -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def as_expected(status: int, said: str) -> bool:
            last = said.strip().splitlines()[-1] if said else ""  # a text of two lines would begin further up
            return (self.scenario.best_effort and status == 0) or (
                os.WEXITSTATUS(status) == 1 and last.partition(":")[0].rpartition(".")[2] == refused and "No space left" in last
            )

        for number in sorted(random.Random(seed).sample(writes, min(len(writes), most))):
            self._end_at(number, self.steps[number].action == "write", "full disk", full, as_expected)

    def cut_power(self) -> None:
        """After each step: what was synced is there, what wasn't is gone, or its name alone is left. After the last: all is there."""
        shutil.copytree(self.before, self.copy, symlinks=True)
        left = self.folder / "left"
        ends = self.folder / "ends.json"

        def run() -> None:
            disk, told, seen = Disk(), list[dict[str, str]](), set[str]()
            disk.sync_all(str(self.copy))

            def cut(step: Step) -> None:
                for names_last in (False, True):
                    disk.lost(str(self.copy), str(left), names_last=names_last)
                    state = repr(_contents(left))
                    if state not in seen:  # most steps change nothing that counts
                        seen.add(state)
                        told.append(self._judged(f"power cut after {step.action} {step.path}, names last: {names_last}", left, self.before))
                    shutil.rmtree(left)

            def after(step: Step, descriptor: int | None) -> None:
                status = os.lstat(step.path) if step.action in ("open", "mkdir") else None
                if status is not None and (step.action == "mkdir" or status.st_size == 0):
                    disk.contents.pop(status.st_ino, None)  # a new inode may have the number of one that is gone
                    disk.entries.pop(status.st_ino, None)
                if step.action == "fsync":
                    disk.sync(step.path)
                if step.action not in ("open", "write"):
                    cut(step)

            with watching(self.copy, after=after):
                self.scenario.operate(self.copy)
            disk.lost(str(self.copy), str(left), names_last=False)
            told.append(self._judged("power cut after all", left, self.after))
            shutil.rmtree(left)
            ends.write_text(json.dumps(told))

        status, said = forked(run)
        self.ends += json.loads(ends.read_text()) if status == 0 else [{"end": "power cut", "wrong": said}]
        shutil.rmtree(self.copy)

    def _end_at(self, number: int, half: bool, kind: str, end: Callable[[], None], as_expected: Callable[[int, str], bool]) -> None:
        shutil.copytree(self.before, self.copy, symlinks=True)
        done, ended = 0, False

        def before(step: Step) -> None:
            nonlocal done, ended
            if (done == number and not half) or (ended and step.action in _NEED_ROOM):
                ended = True
                end()
            done += 1

        def halved(step: Step) -> Callable[[], None] | None:
            nonlocal ended
            ended = ended or done == number
            return end if ended else None

        def run() -> None:
            with watching(self.copy, before=before, half=halved if half else None):
                self.scenario.operate(self.copy)

        status, said = forked(run)
        step = self.steps[number]
        what = f"{kind} at step {number}, {'half of ' if half else 'before '}{step.action} {os.path.relpath(step.path, self.copy)}"
        if not as_expected(status, said):
            self.ends.append({"end": what, "wrong": f"ended with {status}: {said}"})
        else:
            self.ends.append(self._judged(what, self.copy, self.before))
        shutil.rmtree(self.copy)

    def _judged(self, what: str, folder: Path, may_be: Path) -> dict[str, str]:
        """Checks that a folder is as `may_be`, or as it is to be."""

        def judge() -> None:
            self.scenario.check(folder, may_be, self.after)
            self.scenario.repeat(folder, self.before, self.after)

        status, said = forked(judge)
        return {"end": what, "wrong": said or (f"status {status}" if status else "")}


def _contents(folder: Path) -> dict[str, bytes]:
    paths = sorted(folder.rglob("*"))
    return {
        str(p.relative_to(folder)): os.readlink(p).encode() if p.is_symlink() else p.read_bytes() if p.is_file() else b"/" for p in paths
    }


def main(module: str, name: str, folder: str, seed: str, kills: str, fills: str) -> None:
    watch_everything()
    sweep = Sweep(getattr(importlib.import_module(module), name), Path(folder))
    sweep.kill(int(seed), int(kills))
    sweep.fill(int(seed), int(fills))
    sweep.cut_power()
    sys.stdout.write(json.dumps(sweep.ends))


def ends(python: str, module: str, scenario: str, *, kills: int, fills: int = 8, seed: int = 1, **environment: str) -> list[dict[str, str]]:
    """All that came of a scenario, in a process of its own: what was done in `end`, what was wrong with it in `wrong`.

    Args:
        python: an interpreter that has what the scenario imports.
        module: of tests/support.
        scenario: its name there.
        kills: at most so many SIGKILLs,
        fills: and full disks; the power is cut after each step.
        seed: chooses the steps.
        environment: more variables.
    """
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        command = [python, __file__, module, scenario, f"{folder}/sweep", str(seed), str(kills), str(fills)]
        variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "OPENBLAS_NUM_THREADS": "1", **environment}
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=variables)
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.modules["killing"] = sys.modules["__main__"]
    main(*sys.argv[1:])
