"""The rolling checkpoint: the whole state of a run, written atomically, read without code."""

import contextlib
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmark.core.files import replacing
from benchmark.core.records import STATE

CHECKPOINT = f"{STATE}/checkpoint.pt"


@dataclass(frozen=True)
class Identity:
    """What decides the numbers of a run: a checkpoint of another identity is not continued."""

    spec_digest: str
    code_version: str
    dataset_fingerprint: str
    platform: str


def save_checkpoint(folder: Path, identity: Identity, state: dict[str, Any]) -> None:
    """Write ``state``: tensors and plain containers."""
    with replacing(folder / CHECKPOINT) as temporary:
        torch.save({"identity": asdict(identity), "state": state}, temporary)


def load_checkpoint(folder: Path, identity: Identity) -> tuple[dict[str, Any] | None, str]:
    """Return the state and a message; None when there is nothing that this run can continue from.

    A checkpoint of another identity, or a file that torch cannot read, is left aside with a
    message: starting over is always right, continuing from it never is. Tensors stay on the CPU:
    the optimiser keeps its step counts where they are, and reads them there without waiting for a
    GPU.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None, ""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (EOFError, RuntimeError, pickle.UnpicklingError):
        return None, f"{CHECKPOINT} cannot be read; starting from the beginning"
    saved, state = content["identity"], content["state"]
    for key, value in asdict(identity).items():
        if saved[key] != value:
            reason = f"has {key.replace('_', ' ')} {saved[key]}, not {value}"
            return None, f"{CHECKPOINT} {reason}; starting from the beginning"
    return state, f"continuing at epoch {state['epoch'] + 1}, step {state['position']}"


def remove_checkpoint(folder: Path) -> None:
    """Delete the checkpoint of a finished run, and what a killed attempt left half-written.

    The checkpoint's folder goes, too, when it is left empty.
    """
    path = folder / CHECKPOINT
    half_written = ".*.????????"  # the names that ``replacing`` gives
    for each in (path, *path.parent.glob(half_written), *folder.glob(half_written)):
        each.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it may hold other files, or be a link to another disk
        path.parent.rmdir()
