"""The reference client as a device runs it: a process of its own, with the environment that a device has."""

import atexit
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from release_channels import Fleet

from tfx_edge.release.health import enrol
from tfx_edge.schemas import DeviceStatus, Enrolment


@cache
def device_python() -> str:
    """A Python that has what a device has: of `.venv/device`, which set-up makes where tuf's client doesn't run in `.venv` itself."""
    own = Path(sys.prefix) / "device" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


_FORKS = """
import json, os, sys, traceback
from tfx_edge.device.__main__ import main
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.environ.clear()
        os.environ.update(job["env"])
        try:
            status = main(job["arguments"])
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status or 0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def forks() -> "subprocess.Popen[str]":
    """A process that has imported the client, and forks for each command: a command's own process without its start, most of its time."""
    process = subprocess.Popen([device_python(), "-c", _FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
    atexit.register(process.kill)
    return process


@dataclass
class Client:
    """A device that follows a channel of a fleet; `settings` are of its device.json."""

    folder: Path
    settings: dict[str, Any]

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def current(self) -> Path:
        return self.state / "current"

    def command(self, *arguments: str) -> list[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "device.json").write_text(json.dumps(self.settings))
        return [device_python(), "-m", "tfx_edge.device", str(self.folder / "device.json"), *arguments]

    def run(self, *arguments: str, env: dict[str, str] | None = None, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Runs a command; with options of Popen in a process that is started anew."""
        command = self.command(*arguments)
        if options:
            return subprocess.run(command, capture_output=True, text=True, cwd="/", check=False, env=env, **options)
        said = {name: self.folder / name for name in ("stdout", "stderr")}
        job = {"arguments": command[3:], "env": env or dict(os.environ), **{name: str(file) for name, file in said.items()}}
        process = forks()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        status = int(process.stdout.readline())
        return subprocess.CompletedProcess(command, status, *(file.read_text() for file in said.values()))

    def update(self, expected: int = 0, **options: Any) -> str:
        """Updates; returns its one line."""
        return self.expect(expected, "update", **options)

    def expect(self, status: int, *arguments: str, **options: Any) -> str:
        done = self.run(*arguments, **options)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        said = done.stderr if status == 1 else done.stdout
        if arguments != ("identity",):
            assert len(said.splitlines()) == 1, said
        if status == 1:
            assert said.startswith("error: ") and not done.stdout
        return said

    def status(self) -> DeviceStatus:
        return DeviceStatus.from_json(self.run("status", "--json").stdout)

    def enrol(self, fleet: Fleet, name: str = "canary") -> Enrolment:
        identity = Enrolment.from_json(self.expect(0, "identity"))
        envelope = enrol(identity.device_id, identity.key, fleet.keyring, fleet.open(name).policy.fleet_keys)
        (self.state / "enrolment.json").write_text(json.dumps(envelope))
        return identity


def client(fleet: Fleet, device_id: str = "device-1", name: str = "canary", **settings: Any) -> Client:
    """A device that is shipped with the channel's first root."""
    channel = fleet.folder / "channels" / name
    folder = fleet.folder / "devices" / device_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "root.json").write_bytes((channel / "metadata" / "1.root.json").read_bytes())
    facts = {"device_id": device_id, "channel": name, "source": str(channel), "root": "root.json", "state": "state"}
    return Client(folder, facts | settings)


@dataclass
class Server:
    """A static HTTP server of a folder, which counts, breaks off and takes uploads as a test wants it.

    Attributes:
        url: of the folder.
        ranges: whether it knows of them.
        served: bytes of each path that were sent, a number a request.
        break_after: bytes of a body after which the connection ends, for a path; taken out once it has done so.
        uploads: bodies that were PUT, by path.
        answer: instead of a file; gets the path, returns a status, or None for the file.
    """

    url: str = ""
    ranges: bool = True
    served: dict[str, list[int]] = field(default_factory=dict)
    break_after: dict[str, int] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict)
    answer: Callable[[str], int | None] = lambda path: None
    body: Callable[[str, bytes], Iterator[bytes] | None] = lambda path, content: None


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Serves a folder on the loopback interface."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.path = urlsplit(self.path).path  # as a proxy it is asked for whole URLs
            file = folder / self.path.lstrip("/")
            status = server.answer(self.path) or (200 if file.is_file() else 404)
            if status != 200:
                self.send_error(status)
                return
            content, start = file.read_bytes(), 0
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            if asked and server.ranges:
                start = int(asked[1])
                if start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            made = server.body(self.path, content)
            if made is None:
                self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            length = server.break_after.pop(self.path, len(content) - start)
            sent = server.served.setdefault(self.path, [])
            sent.append(0)
            try:
                for chunk in [content[start : start + length]] if made is None else made:
                    self.wfile.write(chunk)
                    sent[-1] += len(chunk)
            except OSError:  # the client has hung up
                pass
            self.close_connection = True

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            status = server.answer(self.path)
            if status is None:
                server.uploads[self.path] = content
            self.send_response(status or 201)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def without_proxies() -> dict[str, str]:
    """This environment, where loopback is reached directly."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
