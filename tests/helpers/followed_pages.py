"""Follow a page of the documentation word for word in a copy of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pages import ROOT, Block

FILES = ("python", "yaml", "csv")  # languages of blocks that are files; their title is the path
# install: the environment of the test stands in for the one it makes; minutes: too long for a test
NOT_RUN = {"install", "minutes"}
LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv", "results", "*.egg-info", "__pycache__", ".*_cache", "tests", "data"
)


def copy_of_the_repository(folder: Path) -> Path:
    """Return a copy of the repository without results, below ``folder``."""
    return Path(shutil.copytree(ROOT, folder / "clone", ignore=LEFT_BEHIND, symlinks=True))


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


def follow(page: list[Block], folder: Path) -> str:
    """Write the files of a page and return what its commands print, all in one shell."""
    write_files(page, folder)
    commands = [each.text for each in page if each.language == "bash" and each.title not in NOT_RUN]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(folder),
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(["set -e", *commands])],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1500,  # a minute on a free machine, much more on a crowded one
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def expected_lines(page: list[Block], folder: Path) -> list[str]:
    """Return the lines that a page shows as output; ... stands for the repository's folder."""
    shown = [line for block in page if block.language == "text" for line in block.text.splitlines()]
    return [line.replace("...", str(folder)) for line in shown]
