"""Memory of this process."""

import os
from pathlib import Path


def resident_bytes() -> int:
    """What of the process is in memory now, shared libraries with it; 0 where the system doesn't tell, as outside Linux."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0
