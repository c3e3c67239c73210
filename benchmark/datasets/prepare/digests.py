"""Digests of files, and the expected ones that the user or a publisher gives."""

import hashlib
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark.core.errors import ConfigError, DataError
from benchmark.core.paths import open_regular, os_errors
from benchmark.datasets.prepare.meter import Meter

LENGTHS = {"md5": 32, "sha256": 64}  # hex digits
CHUNK = 1 << 20


class DamagedError(DataError):
    """A file that is not what was published, and must be fetched again."""


def check_digests(path: Path, expected: Mapping[str, str]) -> str:
    """Return the sha256 of a file; raise DamagedError when an expected digest differs.

    ``expected``: kind (md5, sha256) -> hex digits. One reading gives all digests.
    """
    hashes = {kind: hashlib.new(kind, usedforsecurity=False) for kind in {"sha256", *expected}}
    with (
        os_errors(f"cannot read {path}", "make it readable"),
        open_regular(path) as file,
        Meter(f"checking {path.name}", path.stat().st_size, "B") as meter,
    ):
        while chunk := file.read(CHUNK):
            for digest in hashes.values():
                digest.update(chunk)
            meter.add(len(chunk))
    for kind, wanted in expected.items():
        if hashes[kind].hexdigest() != wanted.lower():
            raise DamagedError(
                f"{path}: {kind} is {hashes[kind].hexdigest()}, expected {wanted.lower()}; it is "
                "damaged or another version: fetch it again, or check the digest with its publisher"
            )
    return hashes["sha256"].hexdigest()


def parse_digests(kind: str, values: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return {file name: digest} from texts ``HEX`` (one source) or ``FILE=HEX``.

    Raise ConfigError for other texts.
    """
    digests: dict[str, str] = {}
    problems = []
    for value in values:
        name, equals, digest = value.rpartition("=")
        if not equals:
            name = names[0] if len(names) == 1 else ""
        if name not in names:
            problems.append(
                f"'{value}' belongs to none of the sources ({', '.join(names) or 'none given'}); "
                "write FILE=HEX"
            )
        elif len(digest) != LENGTHS[kind] or not set(digest) <= set(string.hexdigits):
            problems.append(f"'{digest}' is not a digest of {LENGTHS[kind]} hexadecimal digits")
        else:
            digests[name] = digest.lower()
    if problems:
        raise ConfigError(f"--{kind}", problems)
    return digests
