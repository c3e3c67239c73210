"""The GPUs of this machine: which ones a process sees, and which ones no other run has taken.

A scheduler of a cluster gives each job its own; on one machine runs share them out by locks.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"
# Kept open: a lock ends with the process, however that ends.
_locks: list[int] = []


def visible_gpus() -> list[str]:
    """Return the names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES has them."""
    if VISIBLE in os.environ:
        return [name for name in os.environ[VISIBLE].split(",") if name.strip() not in ("", "-1")]
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(lines))]


def take_gpus(count: int, folder: Path | None = None) -> list[str]:
    """Take ``count`` GPUs that no other run of this user has, for as long as the process lives.

    It sees no others from then on. Where fewer are free, or there is one alone, nothing is taken
    and the runs share. Return what was taken. ``folder``: of the locks.
    """
    names = visible_gpus()
    if len(names) < 2 or "SLURM_JOB_ID" in os.environ:
        return []
    folder = folder or Path(tempfile.gettempdir(), f"ranking-losses-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    taken: dict[str, int] = {}
    for name in names:
        if len(taken) == count:
            break
        lock = os.open(folder / f"{name.strip().replace('/', '_')}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken[name] = lock
        except OSError:
            os.close(lock)
    if len(taken) < count:
        for lock in taken.values():
            os.close(lock)
        return []
    _locks.extend(taken.values())
    os.environ[VISIBLE] = ",".join(taken)
    return list(taken)
