"""Writes the lock files: every package of this environment with the hashes of its files.

    python envs/lock.py envs

requirements.lock   every package, direct and transitive, at the version installed here, but for
                    torch and faiss
torch.lock          torch as the package index has it, on Linux with the CUDA libraries it needs
torch-cpu.lock      torch's CPU build: the one file that pip, as it is set up here, gets
faiss-{cpu,gpu}.lock   the two builds of faiss, with the libraries that they need besides

uv, in an environment of its own, asks the package index for the hashes of all files of a version
and for what other platforms and Pythons need besides, so that one lock serves them all.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

UV = "uv==0.13.8"
FAISS = {"faiss-cpu.lock": "faiss-cpu==1.15.1", "faiss-gpu.lock": "faiss-gpu-cu12==1.14.1.post1"}
LEFT_OUT = re.compile(r"pip|ranking-loss-benchmark|faiss-.*")
OF_TORCH = re.compile(r"torch|triton|(nvidia|cuda)-.*")
OPTIONS = "--universal --python-version=3.11 --generate-hashes --no-config -q --no-header"
HEADER = (
    "# Written by 'make lock', not by hand. Installed with pip --require-hashes --no-deps "
    "(see README.md here).\n"
)

Locked = dict[str, str]  # name: its requirement, with platforms and hashes, as pip reads it


def installed() -> dict[str, str]:
    """Returns {name: version} of every package here but those that LEFT_OUT names, without a
    build's suffix."""
    versions = {}
    for package in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
        if not LEFT_OUT.fullmatch(name):
            versions[name] = package.version.split("+")[0]
    return versions


def locked(python: Path, requirements: list[str], pins: list[str]) -> Locked:
    """Returns the requirements and all that they need, at the pinned versions where there are
    any."""
    certificates = {"SSL_CERT_FILE": os.environ["PIP_CERT"]} if "PIP_CERT" in os.environ else {}
    with tempfile.TemporaryDirectory() as folder:
        asked, constraints, answer = (
            Path(folder) / name for name in ("asked.in", "pins.txt", "answer.txt")
        )
        asked.write_text("\n".join(requirements) + "\n")
        constraints.write_text("\n".join(pins) + "\n")
        command = [python, *f"-m uv pip compile {OPTIONS} --no-annotate".split()]
        command += ["-c", constraints, "-o", answer, asked]
        subprocess.run(command, check=True, env={**os.environ, **certificates})
        return {
            block.split("==")[0]: block.strip()
            for block in re.split(r"\n(?=\S)", answer.read_text())
        }


def hashed_file(requirement: str) -> str:
    """Returns the requirement with the hash of the one file that pip gets for it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--dest"]
        subprocess.run([*command, folder, requirement], check=True)
        (path,) = Path(folder).iterdir()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return f"{requirement} \\\n    --hash=sha256:{digest}"


def write(path: Path, packages: Locked) -> None:
    """Writes one lock file, in alphabetical order."""
    path.write_text(
        HEADER + "\n".join(text for _, text in sorted(packages.items())) + "\n", encoding="utf-8"
    )
    print(f"{path}: {len(packages)} packages")


def main(folder: Path) -> None:
    """Writes all lock files into ``folder``."""
    versions = installed()
    pins = [f"{name}=={version}" for name, version in versions.items()]
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = Path(place) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-qq", UV], check=True)
        packages = locked(python, pins, pins)
        faiss = {name: locked(python, [requirement], pins) for name, requirement in FAISS.items()}
    write(folder / "torch-cpu.lock", {"torch": hashed_file(f"torch=={versions['torch']}+cpu")})
    for file, of_torch in (("torch.lock", True), ("requirements.lock", False)):
        chosen = {name for name in packages if bool(OF_TORCH.fullmatch(name)) == of_torch}
        write(folder / file, {name: packages[name] for name in chosen})
    for name, found in faiss.items():
        write(folder / name, {key: text for key, text in found.items() if key not in packages})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
