"""The rolling checkpoint: the whole state of a run, written atomically, read without executing anything."""

from __future__ import annotations

import pickle
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch

from benchmark.core.files import replacing, require_folder
from benchmark.core.records import STATE

CHECKPOINT = f"{STATE}/checkpoint.pt"
# What reading damaged or foreign content raises, here or inside torch.
UNREADABLE = (
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    zlib.error,
)


def save_checkpoint(folder: Path, identity: dict[str, str], state: dict[str, Any]) -> None:
    """Writes ``state`` (tensors and plain containers) as the run's checkpoint; raises RunError when it cannot."""
    require_folder(folder)
    with replacing(folder / CHECKPOINT) as temporary:
        try:
            torch.save({"identity": identity, "state": state}, temporary)
        except RuntimeError as error:  # what torch makes of a full disk
            raise OSError(_first_line(error)) from error


def load_checkpoint(folder: Path, identity: dict[str, str]) -> tuple[dict | None, str]:
    """Returns (state, message): state is None when there is nothing that this very run can continue from.

    A checkpoint of another specification, code version, dataset or platform, a damaged file or one with foreign
    objects is left aside with a message: starting over is always right, continuing from it never is. Tensors stay
    on the CPU: the optimiser keeps its step counts where they are, and there it reads them without waiting for a GPU.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None, ""
    try:
        _check_sums(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(content, dict) or not isinstance(content["state"], dict):
            raise TypeError("it holds something else")
        found, state = dict(content["identity"]), content["state"]
        message = f"continuing at epoch {state['epoch'] + 1}, step {state['position']}"
    except UNREADABLE as error:
        return (
            None,
            f"{CHECKPOINT} cannot be read ({_first_line(error)}); starting from the beginning",
        )
    for key, value in identity.items():
        if found.get(key) != value:
            words = key.replace("_", " ")
            return (
                None,
                f"{CHECKPOINT} has {words} {found.get(key)}, not {value}; starting from the beginning",
            )
    return state, message


def remove_checkpoint(folder: Path) -> None:
    """Deletes the checkpoint of a finished run and its folder when that is left empty."""
    path = folder / CHECKPOINT
    path.unlink(missing_ok=True)
    if path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()


def _check_sums(path: Path) -> None:
    """Raises BadZipFile for a changed byte: torch writes check sums, but does not compare them when it reads.

    The sums are those of the parts; an entry of the directory that torch would not have written is refused before
    them. One that calls its part a folder lets torch read nothing and continue with whatever the memory held.
    """
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            if (part.compress_type, part.external_attr, part.compress_size) != (
                zipfile.ZIP_STORED,
                0,
                part.file_size,
            ):
                raise zipfile.BadZipFile(f"its part {part.filename} is damaged")
        damaged = archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"its part {damaged} is damaged")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
