"""The rolling checkpoint: the whole state of a run, written atomically, read without executing anything."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch

from benchmark.files import replacing
from benchmark.records import STATE

CHECKPOINT = f"{STATE}/checkpoint.pt"


def save_checkpoint(folder: Path, identity: dict[str, str], state: dict[str, Any]) -> None:
    """Writes ``state`` (tensors and plain containers) as the run's checkpoint."""
    with replacing(folder / CHECKPOINT) as temporary:
        torch.save({"identity": identity, "state": state}, temporary)


def load_checkpoint(folder: Path, identity: dict[str, str], device: torch.device) -> tuple[dict | None, str]:
    """Returns (state, message): state is None when there is nothing that this very run can continue from.

    A checkpoint of another specification or code version, a torn file or one with foreign objects is left
    aside with a message: starting over is always right, continuing from it never is.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None, ""
    try:
        content = torch.load(path, map_location=device, weights_only=True)
        found, state = content["identity"], content["state"]
    except (
        RuntimeError,
        OSError,
        EOFError,
        KeyError,
        TypeError,
        ValueError,
        pickle.UnpicklingError,
    ) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        return None, f"{CHECKPOINT} cannot be read ({reason}); starting from the beginning"
    for key, value in identity.items():
        if found.get(key) != value:
            words = key.replace("_", " ")
            return (
                None,
                f"{CHECKPOINT} has {words} {found.get(key)}, not {value}; starting from the beginning",
            )
    return state, f"continuing at epoch {state['epoch'] + 1}, step {state['position']}"


def remove_checkpoint(folder: Path) -> None:
    """Deletes the checkpoint of a finished run and its folder when that is left empty."""
    path = folder / CHECKPOINT
    path.unlink(missing_ok=True)
    if path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()
