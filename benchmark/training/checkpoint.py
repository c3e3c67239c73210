"""The rolling checkpoint: the whole state of a run, written atomically, read without code."""

import contextlib
import pickle
import zipfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmark.core.files import replacing, require_folder
from benchmark.core.paths import open_regular
from benchmark.core.records import STATE
from benchmark.core.zip_file import open_zip

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


@dataclass(frozen=True)
class Identity:
    """What decides the numbers of a run: a checkpoint of another identity is not continued."""

    spec_digest: str
    code_version: str
    dataset_fingerprint: str
    platform: str


def save_checkpoint(folder: Path, identity: Identity, state: dict[str, Any]) -> None:
    """Write ``state`` (tensors and plain containers); raise RunError when it cannot be."""
    require_folder(folder)
    with replacing(folder / CHECKPOINT) as temporary:
        try:
            torch.save({"identity": asdict(identity), "state": state}, temporary)
        except RuntimeError as error:  # what torch makes of a full disk
            raise OSError(_first_line(error)) from error


def load_checkpoint(folder: Path, identity: Identity) -> tuple[dict[str, Any] | None, str]:
    """Return the state and a message; None when there is nothing that this run can continue from.

    A checkpoint of another identity, a damaged file or one with foreign objects is left aside with
    a message: starting over is always right, continuing from it never is. Tensors stay on the CPU:
    the optimiser keeps its step counts where they are, and reads them there without waiting for a
    GPU.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None, ""
    try:
        _check_sums(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
        saved, state = dict(content["identity"]), dict(content["state"])
        if not all(isinstance(value, str) for value in saved.values()):
            raise TypeError("its identity holds other values than texts")
        message = f"continuing at epoch {state['epoch'] + 1}, step {state['position']}"
    except UNREADABLE as error:
        reason = f"cannot be read ({_first_line(error)})"
        return None, f"{CHECKPOINT} {reason}; starting from the beginning"
    for key, value in asdict(identity).items():
        if saved.get(key) != value:
            reason = f"has {key.replace('_', ' ')} {saved.get(key)!s:.80}, not {value}"
            return None, f"{CHECKPOINT} {reason}; starting from the beginning"
    return state, message


def remove_checkpoint(folder: Path) -> None:
    """Delete the checkpoint of a finished run, and its folder when that is left empty."""
    path = folder / CHECKPOINT
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it may hold other files, or be a link to another disk
        path.parent.rmdir()


def _check_sums(path: Path) -> None:
    """Raise BadZipFile for a changed byte: torch writes check sums, but does not compare them.

    An entry of the directory that torch would not have written is refused before its sum is looked
    at. One that calls its content a folder would let torch read nothing and continue with whatever
    the memory held.
    """
    with open_regular(path) as stream, open_zip(stream) as archive:
        for entry in archive.infolist():
            stored = (zipfile.ZIP_STORED, 0, entry.file_size)
            if (entry.compress_type, entry.external_attr, entry.compress_size) != stored:
                raise zipfile.BadZipFile(f"its part {entry.filename} is damaged")
        damaged = archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"its part {damaged} is damaged")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
