"""Archives of strangers: nothing is written outside of the target, and damage leaves nothing."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

import archives
import pytest

Entry = tuple[str | tarfile.TarInfo | zipfile.ZipInfo, bytes]


def tar(*entries: Entry, mode: str = "w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in entries:
            info = name
            if isinstance(name, str):
                info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def zipped(*entries: Entry) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return stream.getvalue()


def special(kind: bytes, target: str = "", name: str = "set/odd") -> Entry:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info, b""


def special_in_zip(kind: int, content: bytes = b"") -> Entry:
    info = zipfile.ZipInfo("set/odd")
    info.external_attr = (kind | 0o777) << 16
    return info, content


def changed(content: bytes, *places: tuple[int, bytes]) -> bytes:
    data = bytearray(content)
    for at, new in places:
        data[at : at + len(new)] = new
    return bytes(data)


def encrypted(content: bytes) -> bytes:
    """Set the flag of encryption in both headers of the first member."""
    places = content.index(b"PK\x03\x04") + 6, content.index(b"PK\x01\x02") + 8
    return changed(content, *((at, b"\1") for at in places))


def sparse(size: int) -> bytes:
    """A tar whose file of four bytes says that it has ``size``, most of them a hole."""
    info = tarfile.TarInfo("set/hole")
    info.pax_headers = {"GNU.sparse.size": str(size), "GNU.sparse.map": "0,4"}
    return tar((info, b"abcd"))


def of_size(content: bytes, size: int) -> bytes:
    """Say in the directory of a zip that its first member has ``size`` bytes."""
    return changed(content, (content.index(b"PK\x01\x02") + 24, size.to_bytes(4, "little")))


def with_downloads() -> bytes:
    """A whole dataset that brings the download of another one."""
    with tempfile.TemporaryDirectory() as folder:
        archives.make_sop(Path(folder))
        (Path(folder) / "downloads").mkdir()
        (Path(folder) / "downloads" / "0123abcd-other.zip").write_bytes(b"1")
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            archive.add(folder, "set")
    return stream.getvalue()


LEAVES = ["../owned", "set/../../owned", "/tmp/owned", "C:\\owned", "..\\owned", "\\\\host\\owned"]
FINE = ("set/fine.txt", b"fine")
PLAIN = tar(FINE, ("set/b", b"b" * 2000), mode="w")

CASES = {
    **{f"tar with {name}": tar(FINE, (name, b"1")) for name in LEAVES},
    **{f"zip with {name}": zipped(FINE, (name, b"1")) for name in LEAVES},
    "a file through a link": tar(
        special(tarfile.SYMTYPE, "../../..", "set"), ("set/owned", b"1")
    ),
    "a file through two links": tar(
        special(tarfile.SYMTYPE, "b/c/d", "a"),
        special(tarfile.SYMTYPE, "../../../../../..", "b/c/d/up"),
        ("a/up/owned", b"1"),
    ),
    "a link to a private file": tar(FINE, special(tarfile.SYMTYPE, "/etc/passwd")),
    "a hard link to a private file": tar(FINE, special(tarfile.LNKTYPE, "../../../etc/passwd")),
    "a device": tar(FINE, special(tarfile.CHRTYPE)),
    "a pipe": tar(FINE, special(tarfile.FIFOTYPE)),
    "a link in a zip": zipped(FINE, special_in_zip(stat.S_IFLNK, b"../../../../etc/passwd")),
    "a device in a zip": zipped(FINE, special_in_zip(stat.S_IFCHR)),
    "a file that is a folder too": tar(("set", b"1"), ("set/b", b"1")),
    "a part of a name that no disk takes": zipped(("s" * 400, b"1")),
    "an encrypted zip": encrypted(zipped(FINE)),
    "a zip of an unknown compression": changed(
        zipped(FINE), (8, b"\x63"), (zipped(FINE).index(b"PK\x01\x02") + 10, b"\x63")
    ),
    "a zip with a wrong checksum": changed(zipped(FINE), (44, b"x")),
    "a zip without its end": zipped(FINE)[:60],
    "a file of negative size": changed(PLAIN, (124, b"\xff" * 12)),
    "a damaged header": changed(PLAIN, (1024, b"\xff" * 20)),
    "a tar cut between its files": PLAIN[:1024],
    "a cut tar.gz": tar(FINE)[:-9],
    "a tar.gz with a wrong checksum": changed(tar(FINE), (len(tar(FINE)) - 6, b"xx")),
    "gzip of text": gzip.compress(b"hello" * 1000),
    "text": b"hello",
    "nothing": b"",
    "a web page": b"<!DOCTYPE html><title>Sign in</title>",
    "another dataset": tar(FINE),
    "folders inside each other": tar(FINE, ("set/" + "s/" * 1500 + "a", b"1")),
    "folders inside each other in a zip": zipped(("s/" * 1500 + "a", b"1")),
    "a sparse file of 10 GB": sparse(10**10),
    "gigabytes in a few bytes of a zip": of_size(zipped(FINE), 4 * 10**9),
    "gigabytes in a few bytes of a tar.gz": tar(*[(f"{n}", bytes(2**24)) for n in range(17)]),
    "a download of another dataset": with_downloads(),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_archive_is_refused_and_leaves_nothing(command, case):
    Path("set.bin").write_bytes(CASES[case])
    status, said = command("data", "prepare", "sop", "--source", "set.bin", "--root", "root")
    assert status == 2
    assert "set.bin" in said
    assert [path.name for path in Path("root").iterdir() if path.name != ".prepare.lock"] == []


def test_files_of_the_suites_own_names_in_an_archive_change_nothing(command):
    archives.make_sop(Path("sop"))
    for name in ("prepared.json", ".placing/x", ".brought/x.json", ".prepare.lock", "__MACOSX/x"):
        path = Path("sop") / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("{")
    with tarfile.open("sop.tgz", "w:gz") as archive:
        archive.add("sop")
    arguments = ("sop", "--root", "root", "--allow-counts")
    assert command("data", "prepare", *arguments, "--source", "sop.tgz")[0] == 0
    assert command("data", "check", *arguments, "--images")[0] == 0


@pytest.mark.parametrize(("name", "target"), [("odd", "../../.."), ("odd.jpg", "/etc/passwd")])
def test_links_of_a_copied_directory_lead_nowhere_else(command, name, target):
    archives.make_sop(Path("sop"))
    Path("sop/bicycle_final", name).symlink_to(target)
    arguments = ("--source", "sop", "--root", "root", "--allow-counts")
    status, said = command("data", "prepare", "sop", *arguments)
    assert status == 2
    assert name in said
    assert not list(Path("root").glob("[!.]*"))
