"""The pages of the documentation: what they show, and how to follow one word for word."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
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


FILES = ("python", "yaml", "csv")  # languages of blocks that are files; their title is the path
# install: the environment of the test stands in for the one it makes; minutes: too long for a test
NOT_RUN = {"install", "minutes"}
LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv", "results", "*.egg-info", "__pycache__", ".*_cache", "tests", "data"
)


def write_files(page: list[Block], folder: Path) -> list[Path]:
    """Write the files of a page where it says, below ``folder``; return their paths."""
    paths = []
    for block in page:
        if block.language in FILES:
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            paths.append(path)
    return paths


def followed(page: list[Block], place: Path, *needed: str) -> tuple[Path, str]:
    """Follow a page in a copy of the repository; return the copy and what its commands print.

    The copy has no results but ``needed`` ones; each line that the page shows as output is printed.
    """
    folder = Path(shutil.copytree(ROOT, place / "clone", ignore=LEFT_BEHIND, symlinks=True))
    for name in needed:
        shutil.copytree(ROOT / name, folder / name)
    write_files(page, folder)
    commands = [each.text for each in page if each.language == "bash" and each.title not in NOT_RUN]
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", "\n".join(["set -e", *commands])],
        cwd=folder,
        env={**os.environ, "PATH": programs, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=1500,  # a minute on a free machine, much more on a crowded one
        check=False,
    )
    printed = done.stdout + done.stderr  # Snakemake and its display write to stderr
    assert done.returncode == 0, printed[-4000:]
    shown = [line for block in page if block.language == "text" for line in block.text.splitlines()]
    for line in shown:  # ... stands for the repository's folder
        assert line.replace("...", str(folder)) in printed, line
    return folder, printed
