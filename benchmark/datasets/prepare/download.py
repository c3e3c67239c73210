"""Downloads that survive a broken connection, and never pass for complete before they are.

The file grows as ``NAME.part``. ``NAME.part.json`` records the address, the size and the server's
mark of this version (ETag or date), which is sent back as If-Range. When the server answers with
the whole file, another version or another size, the download starts over.
"""

import os
import re
import shutil
import sys
import time
from pathlib import Path
from urllib.parse import SplitResult, urlsplit, urlunsplit

import requests
from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12
from urllib3.exceptions import HTTPError

from benchmark import __version__
from benchmark.core.errors import DataError
from benchmark.core.files import clear_place, write_json
from benchmark.core.paths import MAX_RECORD, os_errors, read_regular
from benchmark.core.plain import whole_number
from benchmark.core.record_files import parse_strictly
from benchmark.datasets.prepare.meter import Meter, format_bytes
from benchmark.datasets.prepare.staging import check_places

CHUNK = 1 << 20  # bytes read at a time
TIMEOUT = 60.0  # seconds without a byte
ATTEMPTS = 5  # in a row without a new byte
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds before the next attempt; doubled each time
TEMPORARY = (408, 425, 429, 500, 502, 503, 504)  # HTTP states that may be gone in a minute


class _Known(TypedDict, total=False):
    """What is known of a file that has arrived in part."""

    url: str
    total: int | None
    version: str | None


class _InterruptedError(Exception):
    """The transfer stopped, and may go on with another request."""


def split_url(url: str) -> SplitResult:
    """Return the parts of an address; raise DataError when it is malformed."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        return parts
    except ValueError as error:
        raise DataError(f"{url!r} is not a valid address: {error}; correct --source") from error


def public_url(url: str) -> str:
    """Return an address without what may be secret: user, password, query."""
    parts = split_url(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_web_page(start: bytes) -> bool:
    """Say whether a file that begins so is HTML, such as a login page instead of an archive."""
    return bool(re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype\s+html|html)", start, re.IGNORECASE))


def download(url: str, target: Path) -> Path:
    """Return ``target`` once it holds all of ``url``; an existing file is not fetched again.

    Raise DataError when the address does not exist or gives a web page, the disk is full, or the
    server stays away. What has arrived is kept, so that the same command continues.
    """
    if target.is_file():
        return target
    with os_errors(f"cannot write {target.parent}", "choose a writable --root"):
        target.parent.mkdir(parents=True, exist_ok=True)
    transfer = _Transfer(url, target)
    most, failures = transfer.size, 0
    while True:
        try:
            return transfer.receive()
        except ValueError as error:  # requests names malformed addresses so
            raise DataError(f"cannot download {public_url(url)}: {error}; correct it") from error
        except (_InterruptedError, requests.RequestException, HTTPError) as error:
            problem = str(error) or type(error).__name__
        # only new bytes are progress: a server may send the same part for ever
        failures = 0 if transfer.size > most else failures + 1
        most = max(most, transfer.size)
        if failures == ATTEMPTS:
            raise DataError(
                f"cannot download {public_url(url)}: {problem}; gave up after {ATTEMPTS} attempts "
                f"without a byte, {format_bytes(transfer.size)} are kept: start the same command "
                "again to continue"
            )
        wait = min(FIRST_WAIT * 2**failures, LONGEST_WAIT)
        _say(f"{public_url(url)}: {problem}; trying again in {wait:.0f} s")
        time.sleep(wait)


class _Transfer:
    """The state of one download on disk."""

    def __init__(self, url: str, target: Path):
        self.url, self.target = url, target
        self.part = target.with_name(f"{target.name}.part")
        self.record = target.with_name(f"{target.name}.part.json")
        clear_place(self.part)
        check_places([], [target, self.part, self.record])
        try:
            self.known = parse_strictly(_Known, read_regular(self.record, MAX_RECORD))
            version = self.known.get("version") or ""
            sound = version.isascii() and version.isprintable() and version == version.strip()
            same = sound and self.known.get("url") == url
        except (OSError, ValueError):
            same = False
        if not same:
            self._start_over()

    @property
    def size(self) -> int:
        """The number of bytes that have arrived."""
        return self.part.stat().st_size if self.part.is_file() else 0

    def receive(self) -> Path:
        """Append what the server sends; return the target, or raise _InterruptedError."""
        headers = {
            "User-Agent": f"ranking-loss-benchmark/{__version__}",
            "Accept-Encoding": "identity",
        }
        if self.size:
            headers["Range"] = f"bytes={self.size}-"
            if version := self.known.get("version"):
                headers["If-Range"] = version
        with requests.get(self.url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if (
                response.status_code == 416
            ):  # nothing after what we have: all of it, or another file
                total = self._total(response, r"bytes \*/(?P<total>[0-9]{1,18})")
            elif response.status_code == 206:
                total = self._total(response, rf"bytes {self.size}-\d+/(?P<total>[0-9]{{1,18}}|\*)")
                self._append(response, total)
            elif response.ok:
                self._append(response, self._begin(response))
            else:
                self._refuse(f"HTTP {response.status_code} {response.reason}", response.status_code)
        with open(self.part, "ab") as stream:
            os.fsync(stream.fileno())
        os.replace(self.part, self.target)
        self.record.unlink(missing_ok=True)
        return self.target

    def _start_over(self, problem: str = "") -> None:
        """Delete what has arrived; raise _InterruptedError if there is a problem to tell."""
        self.part.unlink(missing_ok=True)
        self.record.unlink(missing_ok=True)
        self.known = {}
        if problem:
            raise _InterruptedError(problem)

    def _refuse(self, state: str, code: int) -> None:
        if code in TEMPORARY:
            raise _InterruptedError(state)
        raise DataError(
            f"cannot download {public_url(self.url)}: {state}; check the address, or download the "
            "file with a browser and give its path as --source"
        )

    def _total(self, response: requests.Response, pattern: str) -> int | None:
        """Return the size of a file whose first part we have; start over if it is another one."""
        match = re.fullmatch(pattern, response.headers.get("Content-Range", ""))
        known = self.known.get("total")
        total = int(match["total"]) if match and match["total"] != "*" else known
        complete = response.status_code == 416
        if not match or known not in (None, total) or (complete and total != self.size):
            self._start_over("the file changed on the server")
        return total

    def _begin(self, response: requests.Response) -> int | None:
        """Empty the part file and record which version begins here; return its size."""
        if self.size:
            _say(f"{public_url(self.url)}: the server does not resume; starting over")
        self._start_over()
        headers = response.headers
        if headers.get("Content-Type", "").startswith("text/html"):
            self._refuse_web_page()
        total = whole_number(headers.get("Content-Length", ""))
        tag = headers.get("ETag", "")  # a weak one cannot be used to resume
        version = tag if tag.startswith('"') else headers.get("Last-Modified")
        self.known = {"url": self.url, "total": total, "version": version}
        write_json(self.record, self.known)
        free = shutil.disk_usage(self.part.parent).free
        if total is not None and total > free:
            raise DataError(
                f"{public_url(self.url)} has {format_bytes(total)}, {self.part.parent} has "
                f"{format_bytes(free)} free; free some space or choose another --root"
            )
        return total

    def _append(self, response: requests.Response, total: int | None) -> None:
        size = self.size
        response.raw.enforce_content_length = False  # the check below says more
        with Meter(f"downloading {self.target.name}", total, "B", size) as meter:
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                if size == 0 and is_web_page(chunk):
                    self._refuse_web_page()
                with (
                    os_errors(f"cannot write {self.part}", "free some space"),
                    open(self.part, "ab") as stream,
                ):
                    stream.write(chunk)
                size += len(chunk)
                meter.add(len(chunk))
                if total is not None and size > total:  # and may never end
                    break
        if total is not None and size < total:
            raise _InterruptedError(
                f"the connection ended after {format_bytes(size)} of {format_bytes(total)}"
            )
        if total is not None and size > total:
            self._start_over(f"the server sent {size:,} bytes instead of {total:,}")

    def _refuse_web_page(self) -> None:
        self._start_over()
        raise DataError(
            f"{public_url(self.url)} answers with a web page, not a file; open it in a browser, "
            "download the archive there and give its path as --source"
        )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
