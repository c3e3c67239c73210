"""Writes the lock file: the version of every package of this environment, direct and transitive.

    python envs/lock.py envs/requirements.lock

Left out: the project itself, pip, faiss (chosen by the Makefile, CPU or GPU) and what only a CUDA build of
torch brings along (it pins those itself), so that one lock serves machines with and without a GPU.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path

LEFT_OUT = re.compile(r"pip|ranking-loss-benchmark|faiss-.*|nvidia-.*|cuda-.*|triton")
HEADER = """\
# Every package of the environment, direct and transitive; written by 'make lock', not by hand.
# torch has no build suffix: pip takes the build that the machine's package index offers (see README.md here).
"""


def locked() -> list[str]:
    """Returns one ``name==version`` line for each installed package, in alphabetical order."""
    versions = {}
    for package in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
        if not LEFT_OUT.fullmatch(name):
            versions[name] = package.version.split("+")[0]
    return [f"{name}=={version}" for name, version in sorted(versions.items())]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(HEADER + "\n".join(locked()) + "\n", encoding="utf-8")
