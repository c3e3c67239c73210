"""The small datasets of ``archives`` as their publishers hand them out: wrapped, split, served."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

from archives import MAKERS

Entry = tuple[Path, str]  # file on disk, name in the archive
EVERY = sorted(MAKERS)


def files_below(folder: Path, prefix: str = "") -> list[Entry]:
    """Return every file below ``folder``, named relative to it behind ``prefix``."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(path, prefix + path.relative_to(folder).as_posix()) for path in paths]


def write_tar_gz(path: Path, entries: Iterable[Entry]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for file, name in entries:
            archive.add(file, name)
    return path


def write_zip(path: Path, entries: Iterable[Entry]) -> Path:
    """Write a zip with the folder that macOS adds."""
    with zipfile.ZipFile(path, "w") as archive:
        for file, name in entries:
            archive.write(file, name)
        archive.writestr("__MACOSX/._" + path.stem, b"resource fork")
    return path


# Dataset -> {published archive: (its folder of the dataset, prefix of the names in the archive)}
PACKED = {
    "cub": {"CUB_200_2011.tgz": ("", "CUB_200_2011/")},
    "cars196": {"car_ims.tgz": ("car_ims", "car_ims/")},
    "sop": {"Stanford_Online_Products.zip": ("", "Stanford_Online_Products/")},
    "vehicleid": {"VehicleID_V1.0.zip": ("", "VehicleID_V1.0/")},
    "inaturalist": {"train_val2018.tar.gz": ("train_val2018", "train_val2018/")},
    "inshop": {"img.zip": ("img", "img/")},
    "sfm120k": {"ims.tar.gz": ("ims", "")},
    "roxford5k": {"oxbuild_images.tgz": ("jpg", "")},
}
LISTS = {
    "cars196": ["cars_annos.mat"],
    "inaturalist": [
        f"Inat_dataset_splits/Inaturalist_{split}_set1.txt" for split in ("train", "test")
    ],
    "inshop": ["list_eval_partition.txt"],
    "sfm120k": ["retrieval-SfM-120k-imagenames-clusterids.mat"],
    "roxford5k": ["gnd_roxford5k.pkl"],
    "rparis6k": ["gnd_rparis6k.pkl"],
}


def publish(name: str, folder: Path) -> list[Path]:
    """Return the published files of a small dataset, written to ``folder``."""
    root = folder / "content"
    made = []
    MAKERS[name](root)
    for file, (part, prefix) in PACKED.get(name, {}).items():
        write = write_zip if file.endswith("zip") else write_tar_gz
        made.append(write(folder / file, files_below(root / part, prefix)))
    if name == "rparis6k":  # in two halves, whose names differ from those of the list
        images = files_below(root / "jpg")
        for number, half, prefix in ((1, images[:5], "defense"), (2, images[5:], "triomphe")):
            entries = [(file, f"paris/{prefix}/{image}") for file, image in half]
            made.append(write_tar_gz(folder / f"paris_{number}.tgz", entries))
    made += [Path(shutil.copy(root / file, folder)) for file in LISTS.get(name, ())]
    shutil.rmtree(root)
    return made


def given(files: list[Path]) -> list[object]:
    """Return the arguments for these sources; the digest is theirs, not that of the real ones."""
    arguments = []
    for path in files:
        digest = hashlib.md5(path.read_bytes()).hexdigest()
        arguments += ["--source", path, "--md5", f"{path.name}={digest}"]
    return arguments


def landmark_sets(name: str, parent: Path) -> None:
    """Put the sets that ``sfm120k`` is evaluated on beside its root."""
    if name == "sfm120k":
        for other in ("roxford5k", "rparis6k"):
            MAKERS[other](parent / other)


def content(root: Path) -> dict[str, bytes]:
    """Return the files of a dataset, without what preparing leaves beside them."""
    return {
        # the header of a .mat has the time of writing
        name: path.read_bytes()[128 if path.suffix == ".mat" else 0 :]
        for path, name in files_below(root)
        if not name.startswith((".", "downloads", "prepared.json", "packed-"))
    }


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.iterdir() if path.name == ".unpacking"]


class FileServer(SimpleNamespace):
    """What a server sends at every path, and what it saw; its address ends in "/"."""

    ranges = True  # whether it answers Range with a part
    hang_up: int | None = None  # bytes after which each answer ends early
    tag: str | None = '"first"'
    media_type: str | None = "application/octet-stream"
    sized = True  # whether it says how long the content is
    length = ""  # what it says instead of how long the content is
    password: str | None = None  # "user:password" that it demands
    sent = 0  # bytes of all answers
    content: bytes
    address: str
    states: list[int]  # HTTP states that it answers with first, one per request
    asked: list[str | None]  # the requests' Range headers


def basic(password: str) -> str:
    """Return the header that sends "user:password"."""
    return "Basic " + base64.b64encode(password.encode()).decode()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        state = self.server.state
        asked = self.headers.get("Range")
        state.asked.append(asked)
        if state.states:
            self.send_error(state.states.pop(0))
            return
        if state.password and self.headers.get("Authorization") != basic(state.password):
            self.send_error(401)
            return
        total = len(state.content)
        first = 0
        headers = {"Content-Type": state.media_type, "ETag": state.tag}
        if asked and state.ranges and self.headers.get("If-Range", state.tag) == state.tag:
            first = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
            if first >= total:
                self._start(416, {"Content-Range": f"bytes */{total}", "Content-Length": "0"})
                return
            headers["Content-Range"] = f"bytes {first}-{total - 1}/{total}"
        if state.sized:
            headers["Content-Length"] = state.length or str(total - first)
        self._start(206 if "Content-Range" in headers else 200, headers)
        last = total if state.hang_up is None else min(total, first + state.hang_up)
        state.sent += last - first  # before the client has the last byte and may look
        self.wfile.write(state.content[first:last])

    def _start(self, status: int, headers: dict[str, str | None]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()

    def log_message(self, *parts: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serving(content: bytes) -> Iterator[FileServer]:
    """Yield what a server in a thread serves."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    address = f"http://127.0.0.1:{server.server_port}/"
    server.state = FileServer(content=content, address=address, states=[], asked=[])
    wait = {"poll_interval": 0.01}
    thread = threading.Thread(target=server.serve_forever, kwargs=wait, daemon=True)
    thread.start()
    try:
        yield server.state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
