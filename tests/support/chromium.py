"""A headless Chromium, driven by its own chromedriver through the W3C's WebDriver protocol."""

import base64
import contextlib
import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
MISSING = "no chromium and chromedriver here (apt-get install chromium chromium-driver)"

TAB, ENTER, SPACE = "\ue004", "\ue007", " "
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1180,900",
)


class Chromium:
    """One window.

    Attributes:
        requests: every address that pages asked for since `open`, their own first.
        console: errors and warnings of the console since `open`.
    """

    def __init__(self, port: int, profile: Path) -> None:
        """Starts the browser behind a chromedriver that listens on a port."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._session = ""
        options = {"binary": BROWSER, "args": [*_FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
        self._session = f"/session/{self._call('POST', '/session', {'capabilities': {'alwaysMatch': wanted}})['sessionId']}"

    def open(self, page: Path) -> None:
        """Loads a file and waits until it is there."""
        self.requests: list[str] = []
        self.console: list[str] = []
        self._log()
        self.requests.clear()
        self.console.clear()
        self._call("POST", "/url", {"url": page.as_uri()})
        self._log()

    def run(self, script: str, *arguments: Any) -> Any:
        """What a function body returns in the page."""
        result = self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})
        self._log()
        return result

    def command(self, name: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def media(self, scheme: str = "light", medium: str = "screen") -> None:
        """Pretends to prefer a colour scheme, or to print."""
        self.command("Emulation.setEmulatedMedia", media=medium, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def press(self, *keys: str) -> None:
        """Presses keys one after the other, wherever the focus is."""
        for key in keys:
            strokes = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
            self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def point(self, x: float, y: float) -> None:
        """Moves the mouse to a place in the window."""
        move = {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
        self._call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        shot = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._call("DELETE", "", None)

    def _log(self) -> None:
        for entry in self._call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        self.console += [f"{e['level']} {e['message']}" for e in self._call("POST", "/se/log", {"type": "browser"})]

    def _call(self, method: str, path: str, body: Any) -> Any:
        content = None if body is None else json.dumps(body)
        self._connection.request(method, self._session + path, content, {"Content-Type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())["value"]
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer


@contextlib.contextmanager
def chromium(profile: Path) -> Iterator[Chromium]:
    """A browser with a profile of its own, which is gone afterwards."""
    driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = next(int(found[1]) for line in driver.stdout if (found := re.search(r"successfully on port (\d+)", line)))
        browser = Chromium(port, profile)
        try:
            yield browser
        finally:
            browser.close()
    finally:
        driver.terminate()
        driver.wait(10)
