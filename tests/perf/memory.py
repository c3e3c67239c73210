"""Peak memory of one call, of the whole process."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

PEAK_RESET = Path("/proc/self/clear_refs")


def peak_of_process(call: Callable[[], object]) -> int | None:
    """Return the most bytes by which this process grew during ``call``; None except on Linux."""
    gc.collect()  # garbage that is collected during the call would hide as much of its growth,
    with contextlib.suppress(AttributeError):  # and so would what the C library keeps for later
        ctypes.CDLL(None).malloc_trim(0)
    try:
        PEAK_RESET.write_text("5")
        before = _status("VmRSS")
        call()
        return max(0, _status("VmHWM") - before)
    except OSError:
        return None


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status does not give {key}")
