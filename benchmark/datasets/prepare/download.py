"""Downloads that a broken connection or a killed command only delays.

The file grows as ``NAME.part``. ``NAME.part.json`` records the address and the server's mark of
this version (ETag or date), which goes back as If-Range: a server that has another version by now,
or does not resume, sends the whole file again.
"""

import json
import os
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import requests
from tqdm import tqdm
from urllib3.exceptions import HTTPError

from benchmark import __version__
from benchmark.core.errors import DataError
from benchmark.core.files import write_json

CHUNK = 1 << 20  # bytes read at a time
TIMEOUT = 60.0  # seconds without a byte
ATTEMPTS = 5  # in a row without a new byte
FIRST_WAIT = 1.0  # seconds before the next attempt; doubled each time
TEMPORARY = (408, 416, 425, 429, 500, 502, 503, 504)  # HTTP states after which to try again
HEADERS = {"User-Agent": f"ranking-loss-benchmark/{__version__}", "Accept-Encoding": "identity"}


def public_url(url: str) -> str:
    """Return an address without what may be secret: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def download(url: str, target: Path) -> Path:
    """Return ``target`` once it holds all of ``url``; an existing file is not fetched again.

    Raise DataError when the address does not exist or gives a web page, or the server stays away.
    What has arrived is kept, so that the same command continues.
    """
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    failures = 0
    while True:
        before = _size(part)
        try:
            _receive(url, part)
            break
        except ValueError as error:  # requests names malformed addresses so
            raise DataError(f"cannot download {public_url(url)}: {error}; correct it") from error
        except (requests.RequestException, HTTPError) as error:
            problem = f"{public_url(url)}: {error or type(error).__name__}"
        failures = 0 if _size(part) > before else failures + 1
        if failures == ATTEMPTS:
            raise DataError(
                f"cannot download {problem}; gave up after {ATTEMPTS} attempts without a byte, "
                f"{_size(part):,} bytes are kept: start the same command again to continue"
            )
        wait = FIRST_WAIT * 2**failures
        print(f"{problem}; trying again in {wait:.0f} s", file=sys.stderr, flush=True)
        time.sleep(wait)
    os.replace(part, target)
    _record(part).unlink()
    return target


def _receive(url: str, part: Path) -> None:
    """Append what the server sends; raise RequestException or HTTPError when it stops early."""
    known = json.loads(_record(part).read_text()) if _record(part).exists() else {}
    size = _size(part) if known.get("url") == url and known.get("version") else 0
    ranges = {"Range": f"bytes={size}-", "If-Range": known["version"]} if size else {}
    with requests.get(url, headers=HEADERS | ranges, stream=True, timeout=TIMEOUT) as response:
        answer, state = response.headers, response.status_code
        if state == 416:  # nothing behind what has arrived: that is all, or the file has changed
            if answer.get("Content-Range") == f"bytes */{size}":
                return
            _record(part).unlink()
        if state in TEMPORARY:
            raise requests.HTTPError(f"HTTP {state} {response.reason}")
        page = answer.get("Content-Type", "").startswith("text/html")
        if page or not response.ok:
            raise DataError(
                f"cannot download {public_url(url)}: "
                f"{'it is a web page' if response.ok else f'HTTP {state} {response.reason}'}; "
                "check the address, or download the file with a browser and give its path as "
                "--source"
            )
        if state != 206:
            size = 0
            part.unlink(missing_ok=True)
            tag = answer.get("ETag", "")  # a weak one cannot be used to resume
            version = tag if tag.startswith('"') else answer.get("Last-Modified")
            write_json(_record(part), {"url": url, "version": version})
        total = int(answer["Content-Length"]) + size if "Content-Length" in answer else None
        bar = tqdm(
            total=total, initial=size, desc=f"downloading {part.stem}", unit="B", unit_scale=True,
            leave=False, disable=None,
        )  # fmt: skip
        with bar, open(part, "ab" if size else "wb") as file:
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                file.write(chunk)
                bar.update(len(chunk))
            file.flush()
            os.fsync(file.fileno())


def _record(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
