"""Bytes of tensors that a call holds, counted from the allocator's events."""

import gc
from collections.abc import Callable

from torch.autograd.profiler import profile


def tensor_bytes(call: Callable[[], object]) -> tuple[int, int]:
    """Return the most bytes of CPU tensors that ``call`` holds at once, and those it leaves behind.

    Both beyond those before it: exact, and the same on every machine.
    """
    gc.freeze()  # what was there before does not count, and looking through it takes long
    try:
        with profile(profile_memory=True) as recorded:
            call()
            gc.collect()
    finally:
        gc.unfreeze()
    held = peak = 0
    for event in recorded.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak, held
