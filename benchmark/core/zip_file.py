"""Zip files from outside: neither their list of members nor a compression may fill the memory."""

import zipfile
from typing import IO, Any, cast

MAX_DIRECTORY = 200_000_000  # bytes of the list of members, which zipfile reads at once
# Of other compressions zipfile unpacks at once what it has read: 40 GB from 30 kB.
BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class _InParts:
    """A file that is not read in one piece: of a sparse file all may be called a directory."""

    def __init__(self, stream: IO[bytes]):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, size: int = -1) -> bytes:
        if size > MAX_DIRECTORY:
            raise zipfile.BadZipFile(f"a part of {size:,} bytes")
        return self._stream.read(size if size >= 0 else MAX_DIRECTORY)


def open_zip(stream: IO[bytes]) -> zipfile.ZipFile:
    """Open the zip file in ``stream``; raise BadZipFile for one with a list of more than 200 MB."""
    return zipfile.ZipFile(cast(Any, _InParts(stream)))
