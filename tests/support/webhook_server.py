"""An HTTP server on loopback that takes what webhooks post, and answers as it is told."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Server:
    """What it got, and how it answers: a status for each request in turn, the last one for all further ones."""

    url: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    silent_s: float = 0
    drips: bool = False
    location: str | None = None
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


@contextlib.contextmanager
def webhook_server(**answers: Any) -> Iterator[Server]:
    server = Server(**answers)
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            server.requests.append((self.path, dict(self.headers), json.loads(content)))
            status = server.statuses.pop(0) if len(server.statuses) > 1 else server.statuses[0]
            if server.silent_s:
                over.wait(server.silent_s)
            if server.drips:
                with contextlib.suppress(OSError):
                    while not over.wait(0.1):
                        self.wfile.write(b"H")
                        self.wfile.flush()
                return
            with contextlib.suppress(OSError):
                self.send_response(status)
                if server.location:
                    self.send_header("Location", server.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        over.set()
        http.shutdown()
        thread.join()
        http.server_close()


def free_port() -> int:
    """Where nobody listens."""
    with webhook_server() as server:
        port = int(server.url.rpartition(":")[2])
    return port
