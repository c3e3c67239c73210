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
from benchmark.core.files import begin_folder, write_text
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
    host, _, place = public_url(rest).partition("/")
    path = Path("/", url2pathname(place))
    if scheme == "file" and not host:
        return path, ""
    if scheme not in ("http", "https"):
        raise DataError(f"'{public_url(text)}' is neither http://, https:// nor file:///")
    unusable = leaves_root(path.name) or path.name.startswith(".")
    return Path("download" if unusable else path.name), text


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
    part = target.with_name(f"{target.name}.part")
    part.touch()
    failures = 0
    while failures < ATTEMPTS:
        before = part.stat().st_size
        try:
            _receive(url, part)
            part.with_suffix(".version").unlink()
            return part.rename(target)
        except ValueError as error:  # requests names malformed addresses so
            raise DataError(f"cannot download {public_url(url)}: {error}; correct it") from error
        except (requests.RequestException, HTTPError) as error:
            problem = f"{public_url(url)}: {error or type(error).__name__}"
        failures = 0 if part.stat().st_size > before else failures + 1
        print(f"{problem}; trying again", file=sys.stderr, flush=True)
        time.sleep(FIRST_WAIT * 2**failures)
    raise DataError(
        f"cannot download {problem}; gave up after {ATTEMPTS} attempts without a byte, "
        f"{before:,} bytes are kept: start the same command again to continue"
    )


def _receive(url: str, part: Path) -> None:
    """Append what the server sends; raise RequestException or HTTPError when it stops early."""
    mark = part.with_suffix(".version")
    version = mark.read_text() if mark.exists() else ""
    size = part.stat().st_size if version else 0
    ranges = {"Range": f"bytes={size}-", "If-Range": version} if size else {}
    with requests.get(url, headers=HEADERS | ranges, stream=True, timeout=TIMEOUT) as response:
        answer = response.headers
        said = f"HTTP {response.status_code} {response.reason}"
        if answer.get("Content-Range") == f"bytes */{size}":
            return  # nothing is behind what has arrived
        if response.status_code in TEMPORARY:
            raise requests.HTTPError(said)
        if not response.ok or answer.get("Content-Type", "").startswith("text/html"):
            raise DataError(
                f"cannot download {public_url(url)}: {'a web page' if response.ok else said}; "
                "check it, or download the file with a browser and give its path as --source"
            )
        if response.status_code != 206:
            size = 0
            part.write_bytes(b"")
            tag = answer.get("ETag", "")  # a weak one cannot be used to resume
            write_text(mark, tag if tag[:1] == '"' else answer.get("Last-Modified", ""))
        total = int(answer["Content-Length"]) + size if "Content-Length" in answer else None
        options: dict[str, Any] = {"desc": f"downloading {part.stem}", "initial": size} | BAR
        with part.open("ab") as file, tqdm.wrapattr(file, "write", total, **options) as shown:
            shutil.copyfileobj(response.raw, shown, CHUNK)


def check_digests(path: Path, expected: Mapping[str, str]) -> str:
    """Return the sha256 of a file; raise DamagedError when an expected digest differs.

    ``expected``: kind (md5, sha256) -> hex digits.
    """
    for kind in dict.fromkeys([*expected, "sha256"]):
        with path.open("rb") as file:
            found = hashlib.file_digest(file, kind).hexdigest()
        wanted = expected.get(kind, found).lower()
        if found != wanted:
            raise DamagedError(
                f"{path}: {kind} is {found}, expected {wanted}; it is damaged or another version: "
                "fetch it again, or check the digest with its publisher"
            )
    return found


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
    """Return the bytes that may still be unpacked; raise ValueError where there are none."""
    if size > room:
        raise ValueError(f"it holds more than {MOST_TIMES} times its own size")
    return room - size


def _is_wanted(name: str, is_plain: bool) -> bool:
    """Say whether to unpack a member; raise ValueError for one that no archive may have."""
    if not is_plain or leaves_root(name):
        reason = "would be written outside the target" if is_plain else "is a link or a device"
        raise ValueError(f"member {name!r} {reason}")
    parts = PurePosixPath(name).parts
    if len(parts) > MOST_FOLDERS:
        raise ValueError(f"member {name[:80]!r}... lies in more than {MOST_FOLDERS} folders")
    return not any(part.startswith(".") or part == "__MACOSX" for part in parts)


class Installer:
    """Installs the sources of one dataset into ``root``."""

    def __init__(self, name: str, archives: Sequence[Archive], root: Path):
        self.name = name
        self.archives = archives
        self.root = root
        alone = [archive.provides[0] for archive in archives if len(archive.provides) == 1]
        # the place of each file that an archive of its own provides, by its name
        self._alone = {Path(place).name: Path(place) for place in alone if not place.endswith("/")}

    def install(
        self, path: Path, url: str, digests: Mapping[str, str], link: bool
    ) -> dict[str, str]:
        """Put the content of a source into the root; return where it is from, and its sha256.

        digests: expected md5 or sha256; ``link`` links a directory's content instead of copying it.
        """
        file = path.name
        if url:  # of which two may end alike
            digest = hashlib.sha256(url.encode()).hexdigest()[:8]
            path = download(url, self.root / DOWNLOADS / f"{digest}-{file}")
        elif not path.exists():
            raise DataError(f"no file or directory {path}; give a path or address as --source")
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
                known = [f"{each.file} with {', '.join(each.provides)}" for each in self.archives]
                words = f"{path} is not of dataset '{self.name}'"
                raise DataError(f"{words}; expected: {'; '.join(known)}")
            for base in reversed(bases):  # one may contain those behind it
                _move(base, self.root)
            return facts
        except DamagedError:
            if url:  # else the same command would take the damaged file for complete
                path.unlink()
            raise
        finally:
            shutil.rmtree(tree.parent)

    def holds(self, file: str) -> bool:
        """Say whether what a source of this name provides lies below the root, as far as known."""
        archive = self._archive(file)
        return archive is None or not archive.missing(self.root)

    def _archive(self, file: str) -> Archive | None:
        named = [archive for archive in self.archives if archive.file == file]
        alike = [a for a in self.archives if file.startswith(a.file.partition(".")[0])]
        return next(iter(named or alike), None)  # ims-v2 is as ims

    def _bases(self, tree: Path) -> list[Path]:
        """Return the folders in ``tree``, or up to three below it, that are a dataset's root.

        Several where each has some of its files: a tree as it is published may keep them apart.
        """
        found: list[Path] = []
        wanted = set(self.archives)
        for pattern in ("", "*/", "*/*/", "*/*/*/"):
            for folder in sorted(tree.glob(pattern)) if pattern else [tree]:
                there = {archive for archive in wanted if not archive.missing(folder)}
                if there:
                    found.append(folder)
                    wanted -= there
        return found

    def _arranged(self, tree: Path, file: str) -> list[Path]:
        """Return a folder with the layout of the root, made of ``tree``; none if that fails."""
        archive = self._archive(file)
        base = tree.with_name("base")
        files = [path for path in tree.rglob("*") if path.is_file()]
        if archive and len(archive.provides) == 1 and archive.provides[0].endswith("/"):
            folder = Path(archive.provides[0])  # which the archive does not contain itself
            flat = archive.flat
            places = {p: folder / (p.name if flat else p.relative_to(tree)) for p in files}
        else:  # somebody may have put all lists into one archive
            places = {path: self._alone[path.name] for path in files if path.name in self._alone}
        for path, place in places.items():
            if (base / place).exists():
                raise DataError(f"the source has two files named {path.name}; give one of them")
            (base / place).parent.mkdir(parents=True, exist_ok=True)
            path.rename(base / place)
        return [base] if places else []


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
            words = f"{base}: link '{copy.relative_to(tree)}' leads out of it"
            raise DataError(f"{words}; replace the link by what belongs there")


def _move(source: Path, target: Path) -> None:
    """Move the content of a folder into another; raise DataError before a file would change."""
    for path in source.iterdir():
        place = target / path.name
        if path.is_dir() and place.is_dir() and not (path.is_symlink() or place.is_symlink()):
            _move(path, place)
        elif os.path.lexists(place) and not filecmp.cmp(path, place):
            raise DataError(
                f"{place} is not what the source has there; remove it, or choose an empty --root"
            )
        else:
            path.replace(place)
