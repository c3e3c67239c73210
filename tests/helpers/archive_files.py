"""Archives for tests: written member by member, so that they can hold anything."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile

import pytest

from benchmark.core.errors import DataError
from benchmark.datasets.io.sources import unpack

FILES = {
    f"set/images/{number}.jpg": random.Random(number).randbytes(3000 + number)
    for number in range(40)
}
FILES["set/" + "long" * 40 + ".jpg"] = b"a name that older tar formats store apart"
FORMATS = ["tar", "tar.gz", "tar.bz2", "tar.xz", "zip"]


def tar_file(path, members, mode="w"):
    """Writes a tar of (name, content or TarInfo)."""
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            if isinstance(content, bytes):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                content.name = name
                archive.addfile(content)
    return path


def zip_file(path, members, compression=zipfile.ZIP_STORED):
    """Writes a zip of (name or ZipInfo, content)."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def made(tmp_path, form, members=None):
    members = list(FILES.items()) if members is None else members
    path = tmp_path / f"a.{form}"
    if form == "zip":
        return zip_file(path, members, zipfile.ZIP_DEFLATED)
    return tar_file(path, members, f"w:{form[4:]}")


def refused(path, into, words):
    with pytest.raises(DataError, match=words):
        unpack(path, into)
    outside = [entry for entry in into.parent.parent.rglob("*") if not entry.is_relative_to(into)]
    assert {entry.name for entry in outside} <= {"root", path.name}, (
        "nothing was written outside the target"
    )
