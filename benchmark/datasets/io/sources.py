"""Sources of a dataset: downloads, digests, archives, files and directories that become its root.

A download grows as ``NAME.part``. ``NAME.version`` records the server's mark of this version
(ETag or date), which goes back as If-Range: a server that has another version by now, or does not
resume, sends the whole file again. A source is unpacked into ``root/.unpacking``, and moved into
the root when it is whole. Whatever stops a step, the same command continues it.
"""

import filecmp
import hashlib
import os
import re
import shutil
import stat
import sys
import tarfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.request import url2pathname

import requests
from tqdm import tqdm
from urllib3.exceptions import HTTPError

from benchmark import __version__
from benchmark.core.errors import DataError
from benchmark.core.files import begin_folder, check_regular, write_text
from benchmark.core.paths import leaves_root
from benchmark.datasets.base import Archive

CHUNK = 1 << 20  # bytes read at a time
TIMEOUT = 60.0  # seconds without a byte
DOWNLOADS = "downloads"  # below the root
# Images do not shrink; lists may, to a hundredth, and small archives hold little.
MOST_TIMES = 100
MOST_UNPACKED = 2**28
MOST_FOLDERS = 50  # around a file; Python moves and removes them one inside the other
ATTEMPTS = 5  # in a row without a new byte
FIRST_WAIT = 1.0  # seconds before the next attempt; doubled each time
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)  # HTTP states after which to try again
BAR: dict[str, Any] = {"disable": None, "leave": False}
HEADERS = {"User-Agent": f"ranking-loss-benchmark/{__version__}", "Accept-Encoding": "identity"}


class DamagedError(DataError):
    """A file that is not what was published, and must be fetched again."""


def parse_source(text: str) -> tuple[Path, str]:
    """Return the path of a local source and "", or the name of a remote one and its address."""
    scheme, is_address, rest = text.partition("://")
    if not is_address:
        return Path(os.path.expanduser(text)), ""  # Path.expanduser raises for a nobody
    host, _, url_path = public_url(rest).partition("/")
    path = Path("/", url2pathname(url_path))
    if scheme == "file" and not host:
        return path, ""
    if scheme not in ("http", "https"):
        raise DataError(f"'{public_url(text)}' is neither http://, https:// nor file:///")
    if leaves_root(path.name) or path.name.startswith("."):
        return Path("download"), text
    return Path(path.name), text


def public_url(url: str) -> str:
    """Return an address without what may be secret: user, password, query."""
    return re.sub(r"(?<=://)[^/]*@", "", re.split("[?#]", url)[0])


def download(url: str, target: Path) -> Path:
    """Return ``target`` once it holds all of ``url``; an existing file is not fetched again.

    Raise DataError when the address does not exist or gives a web page, or the server stays away.
    What has arrived is kept, so that the same command continues.
    """
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.part")
    partial.touch()
    failures = 0
    while failures < ATTEMPTS:
        before = partial.stat().st_size
        try:
            _receive(url, partial)
            partial.with_suffix(".version").unlink()
            return partial.rename(target)
        except ValueError as error:  # requests names malformed addresses so
            raise DataError(f"cannot download {public_url(url)}: {error}; correct it") from error
        except (requests.RequestException, HTTPError) as error:
            problem = f"{public_url(url)}: {error or type(error).__name__}"
        failures = 0 if partial.stat().st_size > before else failures + 1
        print(f"{problem}; trying again", file=sys.stderr, flush=True)
        time.sleep(FIRST_WAIT * 2**failures)
    raise DataError(
        f"cannot download {problem}; gave up after {ATTEMPTS} attempts without a byte, "
        f"{before:,} bytes are kept: start the same command again to continue"
    )


def _receive(url: str, partial: Path) -> None:
    """Append what the server sends; raise RequestException or HTTPError when it stops early."""
    version_file = partial.with_suffix(".version")
    size = 0
    headers = HEADERS
    if version_file.exists() and (version := version_file.read_text()):
        size = partial.stat().st_size
        if size:
            headers = HEADERS | {"Range": f"bytes={size}-", "If-Range": version}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        answer = response.headers
        status = f"HTTP {response.status_code} {response.reason}"
        if answer.get("Content-Range") == f"bytes */{size}":
            return  # the file is complete
        if response.status_code in TEMPORARY:
            raise requests.HTTPError(status)
        if not response.ok or answer.get("Content-Type", "").startswith("text/html"):
            received = "a web page" if response.ok else status
            raise DataError(
                f"cannot download {public_url(url)}: {received}; check it, or download the file "
                "with a browser and give its path as --source"
            )
        if response.status_code != 206:
            size = 0
            partial.write_bytes(b"")
            version = answer.get("ETag", "")
            if not version.startswith('"'):  # a weak tag cannot be used to resume
                version = answer.get("Last-Modified", "")
            write_text(version_file, version)
        total = int(answer["Content-Length"]) + size if "Content-Length" in answer else None
        options: dict[str, Any] = {"desc": f"downloading {partial.stem}", "initial": size} | BAR
        with partial.open("ab") as file, tqdm.wrapattr(file, "write", total, **options) as shown:
            shutil.copyfileobj(response.raw, shown, CHUNK)


def check_digests(path: Path, expected: Mapping[str, str]) -> str:
    """Return the sha256 of a file; raise DamagedError when an expected digest differs.

    ``expected``: kind (md5, sha256) -> hex digits.
    """
    for kind in dict.fromkeys([*expected, "sha256"]):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, kind).hexdigest()
        wanted = expected.get(kind, digest).lower()
        if digest != wanted:
            raise DamagedError(
                f"{path}: {kind} is {digest}, expected {wanted}; it is damaged or another version: "
                "fetch it again, or check the digest with its publisher"
            )
    return digest


def unpack(archive: Path, into: Path) -> None:
    """Write the files of an archive (tar, zip) below the folder ``into``.

    Hidden files and what macOS adds are left out. Raise DamagedError for names that leave the
    folder, links, devices, and what cannot be read to its end; DataError for what no disk takes.
    """
    size = archive.stat().st_size
    options = {"desc": f"unpacking {archive.name}"} | BAR
    room = MOST_UNPACKED + MOST_TIMES * size
    try:
        with (
            archive.open("rb") as file,
            tqdm.wrapattr(file, "read", size, **options) as shown,
        ):
            stream: Any = shown
            is_zip = file.read(2) == b"PK"
            file.seek(0)
            if is_zip:
                with zipfile.ZipFile(stream) as packed:
                    for entry in packed.infolist():
                        kind = stat.S_IFMT(entry.external_attr >> 16)
                        room = _left(room, entry.file_size)
                        if _is_wanted(entry.filename, kind in (0, stat.S_IFREG, stat.S_IFDIR)):
                            packed.extract(entry, into)
                return
            with tarfile.open(fileobj=stream, tarinfo=_TarInfo) as tar:
                while member := tar.next():
                    room = _left(room, member.size)
                    if _is_wanted(member.name, member.isfile() or member.isdir()):
                        tar.extract(member, into, filter="data")
                    tar.members.clear()  # type: ignore[attr-defined] # gigabytes for millions of images
                while tar.fileobj.read(CHUNK):  # damage behind the last member shows in a checksum
                    pass
    except Exception as error:  # a damaged archive makes its reader fail in any way
        if isinstance(error, OSError) and error.errno is not None:  # gzip reports damage without
            raise DataError(f"cannot unpack {archive}: {error}; free some space") from error
        raise DamagedError(
            f"{archive} is not an archive (tar, tar.gz, tgz, zip), or is cut off, damaged, "
            f"encrypted or unsafe ({error}); nothing was kept of it: fetch it again"
        ) from error


class _TarInfo(tarfile.TarInfo):
    """A header that is damaged or missing is an error, and not the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> "_TarInfo":
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"byte {tarfile_.offset:,}: {error}") from error


def _left(room: int, size: int) -> int:
    """Return the bytes that may still be unpacked; raise ValueError if none are left."""
    if size > room:
        raise ValueError(f"it holds more than {MOST_TIMES} times its own size")
    return room - size


def _is_wanted(name: str, is_plain: bool) -> bool:
    """Return whether to unpack a member; raise ValueError for a forbidden member."""
    if not is_plain or leaves_root(name):
        reason = "would be written outside the target" if is_plain else "is a link or a device"
        raise ValueError(f"member {name!r} {reason}")
    names = PurePosixPath(name).parts
    if len(names) > MOST_FOLDERS:
        raise ValueError(f"member {name[:80]!r}... lies in more than {MOST_FOLDERS} folders")
    return not any(name.startswith(".") or name == "__MACOSX" for name in names)


class Installer:
    """Installs the sources of one dataset into ``root``."""

    def __init__(self, name: str, archives: Sequence[Archive], root: Path):
        self.name = name
        self.archives = archives
        self.root = root
        alone = [archive.provides[0] for archive in archives if len(archive.provides) == 1]
        # by its name, the path of each file that an archive of its own provides
        self._alone = {Path(path).name: Path(path) for path in alone if not path.endswith("/")}

    def install(
        self, path: Path, url: str, digests: Mapping[str, str], link: bool
    ) -> dict[str, str]:
        """Put the content of a source into the root; return its origin and its sha256.

        digests: expected md5 or sha256; ``link`` links a directory's content instead of copying it.
        """
        file = path.name
        if url:  # two addresses may end with the same name
            digest = hashlib.sha256(url.encode()).hexdigest()[:8]
            path = download(url, self.root / DOWNLOADS / f"{digest}-{file}")
        elif not path.exists():
            raise DataError(f"no file or directory {path}; give a path or address as --source")
        if not path.is_dir():
            check_regular(path)
        facts = {"from": public_url(url) or file}
        tree = self.root / ".unpacking" / "tree"
        begin_folder(tree.parent)
        tree.mkdir()
        try:
            bases = self._bases(path) if path.is_dir() else []
            if self.root.resolve() in [base.resolve() for base in bases]:
                return facts
            if bases:
                for base in bases:
                    _bring(base, tree, link)
                bases = [tree]
            elif path.is_file():
                published = {a.file: {"md5": a.md5} for a in self.archives if a.md5}
                facts["sha256"] = check_digests(path, digests or published.get(file, {}))
                if file in self._alone:
                    shutil.copyfile(path, tree / file)
                else:
                    unpack(path, tree)
                bases = self._bases(tree) or self._arranged(tree, file)
                if any((base / DOWNLOADS).exists() for base in bases):
                    raise DataError(f"{path} brings {DOWNLOADS}/, which is kept for downloads")
            if not bases:
                known = [f"{a.file} with {', '.join(a.provides)}" for a in self.archives]
                raise DataError(
                    f"{path} is not of dataset '{self.name}'; expected: {'; '.join(known)}"
                )
            for base in reversed(bases):  # a folder may contain later folders
                _move(base, self.root)
            return facts
        except DamagedError:
            if url:  # the same command would take the damaged file as complete
                path.unlink()
            raise
        finally:
            shutil.rmtree(tree.parent)

    def holds(self, file: str) -> bool:
        """Return whether the content of a source is below the root, or is unknown."""
        archive = self._archive(file)
        return archive is None or not archive.missing(self.root)

    def _archive(self, file: str) -> Archive | None:
        named = [archive for archive in self.archives if archive.file == file]
        alike = [a for a in self.archives if file.startswith(a.file.partition(".")[0])]
        return next(iter(named or alike), None)  # ims-v2 is as ims

    def _bases(self, tree: Path) -> list[Path]:
        """Return the folders that together are a dataset's root: ``tree``, or up to three below it.

        There are several folders if a published tree has its files in several places.
        """
        bases: list[Path] = []
        wanted = set(self.archives)
        folders = [tree]
        for pattern in ("*/", "*/*/", "*/*/*/"):
            folders += sorted(tree.glob(pattern))
        for folder in folders:
            complete = {archive for archive in wanted if not archive.missing(folder)}
            if complete:
                bases.append(folder)
                wanted -= complete
        return bases

    def _arranged(self, tree: Path, file: str) -> list[Path]:
        """Return a folder with the layout of the root, made of ``tree``; none if that fails."""
        archive = self._archive(file)
        base = tree.with_name("base")
        targets = {}
        for path in tree.rglob("*"):
            if not path.is_file():
                continue
            if archive and len(archive.provides) == 1 and archive.provides[0].endswith("/"):
                # the archive has the content of this folder, but not the folder
                name = path.name if archive.flat else path.relative_to(tree)
                targets[path] = base / archive.provides[0] / name
            elif path.name in self._alone:  # one archive may have all lists
                targets[path] = base / self._alone[path.name]
        for path, target in targets.items():
            if target.exists():
                raise DataError(f"the source has two files named {path.name}; give one of them")
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        return [base] if targets else []


def _bring(base: Path, tree: Path, link: bool) -> None:
    """Link or copy the content of a directory; raise DataError when its links lead out of it."""
    if link:
        for path in base.glob("[!.]*"):
            (tree / path.name).symlink_to(path.resolve())
        return
    ignored = shutil.ignore_patterns(".*", "__MACOSX")
    shutil.copytree(base, tree, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    for copy in tree.rglob("*"):
        if copy.is_symlink() and not copy.resolve().is_relative_to(tree.resolve()):
            raise DataError(
                f"{base}: link '{copy.relative_to(tree)}' leads out of it; replace the link by "
                "what belongs there"
            )


def _move(source: Path, target: Path) -> None:
    """Move the content of a folder into another; raise DataError before a file would change."""
    for path in source.iterdir():
        present = target / path.name
        if path.is_dir() and present.is_dir() and not (path.is_symlink() or present.is_symlink()):
            _move(path, present)
        elif os.path.lexists(present) and not filecmp.cmp(path, present):
            raise DataError(
                f"{present} is not what the source has there; remove it, or choose an empty --root"
            )
        else:
            path.replace(present)
