"""Files of a study's folder on the page: links that carry small files and name large ones."""

import base64
from dataclasses import dataclass
from pathlib import Path

EMBEDDED = 300_000  # bytes of one embedded file; a larger one is linked beside the page


@dataclass(frozen=True)
class Download:
    """A link: what it says, the name to save under, and the address."""

    label: str
    name: str
    address: str


def download(label: str, study: Path, file: str, name: str = "") -> Download:
    """Return the link to ``file`` of a study's folder, saved as ``name`` (default: its own)."""
    path = study / file
    content = path.read_bytes()
    address = f"../{file}"
    if len(content) <= EMBEDDED:
        kind = "text/csv" if path.suffix == ".csv" else "text/plain"
        address = f"data:{kind};charset=utf-8;base64,{base64.b64encode(content).decode()}"
    return Download(label, name or path.name, address)
