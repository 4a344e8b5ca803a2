"""Generated C++ source, compiled and run by the compiler of this machine."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tfx_edge.litert.targets.micro_source import HEADER, SOURCE, MicroSource

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on this machine")


def run_firmware(folder: Path, source: MicroSource, main: str) -> bytes:
    """Builds a program of the two files and `main`, the text of another that includes the header, and gives what it writes."""
    (folder / HEADER).write_bytes(source.header)
    (folder / SOURCE).write_bytes(b"".join(source))
    (folder / "main.cc").write_text(f'#include "{HEADER}"\n#include "{HEADER}"\n{main}')
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "main.cc", SOURCE, "-o", "firmware"]
    subprocess.run(command, cwd=folder, check=True)
    return subprocess.run([folder / "firmware"], check=True, capture_output=True).stdout
