"""Peak memory of one call: of torch's tensors, or of the whole process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch.profiler import ProfilerActivity, profile

_HIGH_WATER = Path("/proc/self/clear_refs")


def peak_of_tensors(call: Callable[[], object]) -> int:
    """Returns the most bytes of CPU tensors that ``call`` held at once, beyond those there before.

    Counted from the allocator's own events: exact, and the same on every machine.
    """
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True
    ) as recorded:
        call()
    held = peak = 0
    for event in recorded.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak


def peak_of_process(call: Callable[[], object]) -> int | None:
    """Returns by how many bytes the memory of this process rose at most during ``call``; None where the system
    does not say (anything but Linux)."""
    try:
        _HIGH_WATER.write_text("5")
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
