"""The pages of the documentation, their fenced blocks, and the commands that they show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block: the first word after the fence, what follows it, and the content."""

    language: str
    title: str
    text: str


def pages() -> list[Path]:
    """Returns every page that a user reads."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path: Path) -> list[Block]:
    """Returns the fenced blocks of a page, in order."""
    found = []
    for info, text in FENCE.findall(path.read_text(encoding="utf-8")):
        language, _, title = info.partition(" ")
        found.append(Block(language, title, text))
    return found


def shown_commands(path: Path, program: str) -> list[str]:
    """Returns every command line of ``program`` in a page, in blocks and in running text, without
    comments."""
    text = path.read_text(encoding="utf-8")
    lines = [line.strip() for block in blocks(path) for line in block.text.splitlines()]
    lines += [" ".join(code.split()) for code in INLINE.findall(FENCE.sub("", text))]
    lines = [line for line in lines if f"{line} ".startswith(f"{program} ")]
    return [re.split(r"\s#|\s{3,}", line)[0].strip() for line in lines]
