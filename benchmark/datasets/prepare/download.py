"""Downloads that survive a broken connection: resumed where they stopped, never taken for whole before they are.

The file grows as ``NAME.part``; ``NAME.part.json`` remembers the address, the size and the server's mark of this
version (ETag or date), which is sent back as If-Range. A server that answers with the whole file, another
version or another size is believed: the download starts over.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from benchmark import __version__
from benchmark.core.errors import DataError
from benchmark.core.files import write_json
from benchmark.datasets.prepare.meter import Meter, amount

CHUNK = 1 << 20  # bytes read at a time
TIMEOUT = 60.0  # seconds without a byte
ATTEMPTS = 5  # in a row that bring nothing
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds before trying again; doubled each time
PASSING = (408, 425, 429, 500, 502, 503, 504)  # HTTP states that may be gone in a minute


def shown(url: str) -> str:
    """Returns an address without what may be secret: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def download(url: str, target: Path) -> Path:
    """Returns ``target`` once it holds all of ``url``; a target that is there already is kept.

    Raises DataError when the address does not exist, the disk is full or the server stays away; what has
    arrived is kept, so that the same command continues.
    """
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot write {target.parent}: {error.strerror}; choose a writable --root"
        ) from error
    transfer = _Transfer(url, target)
    failures = 0
    while True:
        before = transfer.have
        problem = _attempt(transfer)
        if problem is None:
            return transfer.finish()
        failures = 0 if transfer.have > before else failures + 1
        if failures == ATTEMPTS:
            raise DataError(
                f"cannot download {shown(url)}: {problem}; gave up after {ATTEMPTS} attempts without a byte, "
                f"{amount(transfer.have)} are kept: start the same command again to continue"
            )
        wait = min(FIRST_WAIT * 2**failures, LONGEST_WAIT)
        print(f"{shown(url)}: {problem}; trying again in {wait:.0f} s", file=sys.stderr, flush=True)
        time.sleep(wait)


def _attempt(transfer: _Transfer) -> str | None:
    """Returns None when the file is whole, else what went wrong and may go right the next time."""
    try:
        return transfer.receive()
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing after what we have: whole, or another file
            total = _total_in(error.headers.get("Content-Range", ""))
            if total == transfer.have:
                return None
            transfer.start_over()
            return f"the server has {total or 'an unknown number of'} bytes, we have more"
        if error.code not in PASSING:
            raise DataError(
                f"cannot download {shown(transfer.url)}: HTTP {error.code} {error.reason}; check the address, or "
                "download the file with a browser and give its path as --source"
            ) from error
        return f"HTTP {error.code} {error.reason}"
    except urllib.error.URLError as error:
        return str(error.reason)
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__


class _Transfer:
    """The state of one download on disk."""

    def __init__(self, url: str, target: Path):
        self.url, self.target = url, target
        self.part = target.with_name(f"{target.name}.part")
        self.memory = target.with_name(f"{target.name}.part.json")
        self.known = self._remembered()

    @property
    def have(self) -> int:
        """Returns the bytes that have arrived."""
        return self.part.stat().st_size if self.part.is_file() else 0

    def receive(self) -> str | None:
        """Appends what the server sends; returns None when the file is whole, else why it is not."""
        with urllib.request.urlopen(self._request(), timeout=TIMEOUT) as response:
            have = self.have
            if response.status == 206:
                span = re.fullmatch(
                    r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "")
                )
                total = int(span[2]) if span and span[2] != "*" else None
                if not span or int(span[1]) != have or total != self.known.get("total"):
                    self.start_over()
                    return "the file changed on the server"
            else:
                if have:
                    print(
                        f"{shown(self.url)}: the server does not resume; starting over",
                        file=sys.stderr,
                        flush=True,
                    )
                have = 0
                total = self._begin(response)
            return self._append(response, have, total)

    def start_over(self) -> None:
        """Forgets what has arrived."""
        self.part.unlink(missing_ok=True)
        self.memory.unlink(missing_ok=True)
        self.known = {}

    def finish(self) -> Path:
        """Gives the whole file its name."""
        with open(self.part, "rb") as stream:
            os.fsync(stream.fileno())
        os.replace(self.part, self.target)
        self.memory.unlink(missing_ok=True)
        return self.target

    def _remembered(self) -> dict[str, object]:
        try:
            known = json.loads(self.memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        if known.get("url") != self.url:
            self.start_over()
            return {}
        return known

    def _request(self) -> urllib.request.Request:
        headers = {
            "User-Agent": f"ranking-loss-benchmark/{__version__}",
            "Accept-Encoding": "identity",
        }
        if self.have:
            headers["Range"] = f"bytes={self.have}-"
            if self.known.get("version"):
                headers["If-Range"] = self.known["version"]
        return urllib.request.Request(self.url, headers=headers)

    def _begin(self, response: http.client.HTTPResponse) -> int | None:
        """Empties the part file and remembers which version of the file begins here; returns its size."""
        headers = response.headers
        if headers.get_content_type() == "text/html":
            raise DataError(
                f"{shown(self.url)} answers with a web page, not a file; open it in a browser, download the archive "
                "there and give its path as --source"
            )
        length = headers.get("Content-Length")
        total = int(length) if length and length.isdigit() else None
        tag = headers.get("ETag", "")
        version = (
            tag if tag.startswith('"') else headers.get("Last-Modified")
        )  # weak tags cannot be resumed by
        self.known = {"url": self.url, "total": total, "version": version}
        write_json(self.memory, self.known)
        self.part.unlink(missing_ok=True)
        free = shutil.disk_usage(self.part.parent).free
        if total is not None and total > free:
            raise DataError(
                f"{shown(self.url)} has {amount(total)}, {self.part.parent} has {amount(free)} free; free some space "
                "or choose another --root"
            )
        return total

    def _append(
        self, response: http.client.HTTPResponse, have: int, total: int | None
    ) -> str | None:
        with Meter(f"downloading {self.target.name}", total, "B", have) as meter:
            while chunk := response.read(CHUNK):
                self._write(chunk)
                have += len(chunk)
                meter.add(len(chunk))
        if total is None or have == total:
            return None
        if have > total:
            self.start_over()
            return f"the server sent {have:,} bytes instead of {total:,}"
        return f"the connection ended after {amount(have)} of {amount(total)}"

    def _write(self, chunk: bytes) -> None:
        try:
            with open(self.part, "ab") as stream:
                stream.write(chunk)
        except OSError as error:
            raise DataError(
                f"cannot write {self.part}: {error.strerror}; free some space"
            ) from error


def _total_in(content_range: str) -> int | None:
    match = re.fullmatch(r"bytes \*/(\d+)", content_range)
    return int(match[1]) if match else None
