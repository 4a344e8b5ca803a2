"""Programs that may read and write only what the files' modes say, as root may not be held to."""

import os
import subprocess
import sys


def unprivileged(program: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Runs a Python program in a process without any of root's capabilities."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-all", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
