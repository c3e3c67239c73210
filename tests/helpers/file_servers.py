"""Small HTTP servers for tests: one that resumes, one that hangs up midway, one that knows no
ranges."""

from __future__ import annotations

import base64
import contextlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer:
    """Serves ``content`` at every path and remembers the requests' Range headers.

    ranges      whether it answers Range with a part
    hang_up     bytes after which each answer ends early; None sends all
    tag         ETag; None sends none
    states      answers with these HTTP states first, one per request
    media_type  Content-Type; None sends none
    sized       whether it says how long the content is
    length      what it says instead of how long the content is
    password    "user:password" that it demands
    """

    def __init__(self, content: bytes):
        self.content = content
        self.ranges = True
        self.hang_up: int | None = None
        self.tag: str | None = '"first"'
        self.states: list[int] = []
        self.media_type: str | None = "application/octet-stream"
        self.sized = True
        self.length = ""
        self.password: str | None = None
        self.asked: list[str | None] = []
        self.sent = 0  # bytes of all answers
        self.address = ""


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
        if asked and state.ranges and self.headers.get("If-Range", state.tag) == state.tag:
            first = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
            if first >= total:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{total}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{total - 1}/{total}")
        else:
            self.send_response(200)
        if state.media_type is not None:
            self.send_header("Content-Type", state.media_type)
        if state.sized:
            self.send_header("Content-Length", state.length or str(total - first))
        if state.tag is not None:
            self.send_header("ETag", state.tag)
        self.end_headers()
        last = total if state.hang_up is None else min(total, first + state.hang_up)
        state.sent += last - first  # before the client has the last byte and may look
        self.wfile.write(state.content[first:last])

    def log_message(self, *parts: object) -> None:
        """Says nothing."""


@contextlib.contextmanager
def serving(content: bytes) -> Iterator[FileServer]:
    """Yields a server in a thread; its ``address`` ends in "/"."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.state = FileServer(content)
    server.state.address = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield server.state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
