"""Digests of files, and what the user or a publisher says they should be."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark.core.errors import ConfigError, DataError
from benchmark.datasets.prepare.meter import Meter

LENGTHS = {"md5": 32, "sha256": 64}  # hex digits
CHUNK = 1 << 20


class DamagedError(DataError):
    """A file that is not what was published, and must be fetched again."""


def file_digests(path: Path, kinds: Sequence[str]) -> dict[str, str]:
    """Returns the digests of a file (hex) by kind: md5, sha256; one reading gives all."""
    states = {kind: hashlib.new(kind, usedforsecurity=False) for kind in kinds}
    with (
        open(path, "rb") as stream,
        Meter(f"checking {path.name}", path.stat().st_size, "B") as meter,
    ):
        while chunk := stream.read(CHUNK):
            for state in states.values():
                state.update(chunk)
            meter.add(len(chunk))
    return {kind: state.hexdigest() for kind, state in states.items()}


def check_digests(path: Path, expected: Mapping[str, str]) -> dict[str, str]:
    """Returns the sha256 (and other expected digests) of a file; raises DamagedError when one differs."""
    found = file_digests(path, sorted({"sha256", *expected}))
    for kind, digest in expected.items():
        if found[kind] != digest.lower():
            raise DamagedError(
                f"{path}: {kind} is {found[kind]}, expected {digest.lower()}; the file is damaged or another version: "
                "fetch it again, or check the digest with its publisher"
            )
    return found


def parse_digests(kind: str, values: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Returns {file name: digest} from texts ``HEX`` (one source) or ``FILE=HEX``; ConfigError for others."""
    found: dict[str, str] = {}
    problems = []
    for value in values:
        name, equals, digest = value.rpartition("=")
        if not equals:
            name = names[0] if len(names) == 1 else ""
        if name not in names:
            problems.append(
                f"'{value}' belongs to none of the sources ({', '.join(names) or 'none given'}); FILE=HEX"
            )
        elif len(digest) != LENGTHS[kind] or not set(digest) <= set(string.hexdigits):
            problems.append(f"'{digest}' is not a digest of {LENGTHS[kind]} hexadecimal digits")
        else:
            found[name] = digest.lower()
    if problems:
        raise ConfigError(f"--{kind}", problems)
    return found
