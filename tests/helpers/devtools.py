"""Headless Chromium over its debugging pipe: what a page logs, requests, shows and looks like. No driver needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Page:
    """One page of a browser of its own; a context manager that ends the browser."""

    def __init__(self, profile: Path, width: int = 1600, height: int = 1000):
        self._calls, commands = os.pipe(), os.pipe()
        (read_commands, self._out), (self._in, write_events) = commands, self._calls

        def place_pipes() -> None:  # the browser reads commands from 3 and writes answers to 4
            held = os.dup(read_commands), os.dup(write_events)
            os.dup2(held[0], 3)
            os.dup2(held[1], 4)

        browser = next(path for name in NAMES if (path := shutil.which(name)))
        command = [
            browser,
            *OPTIONS,
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            command,
            close_fds=False,
            preexec_fn=place_pipes,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_events)
        self._buffer, self._number, self._session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Returns the browser's answer to one command; events that come in between are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(60)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, address: str) -> None:
        """Goes to an address, forgetting what was seen before."""
        self.events.clear()
        self.call("Page.navigate", url=address)

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 120.0) -> None:
        """Returns once the JavaScript condition holds; otherwise fails with what the page shows."""
        deadline = time.monotonic() + seconds
        # a page that is still being loaded has no body to ask
        guarded = f"(() => {{ try {{ return Boolean({condition}) }} catch {{ return false }} }})()"
        while not self.evaluate(guarded):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"never came true: {condition}; the page shows: {self.text()[:2000]}"
                )
            time.sleep(0.2)

    def text(self) -> str:
        """Returns the text that the page shows."""
        return self.evaluate("document.body ? document.body.innerText : ''")

    def problems(self) -> list[str]:
        """Returns the errors of the console: logged, thrown, or reported by the browser."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:500])
            elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
                found.append(
                    " ".join(
                        str(item.get("value", item.get("description"))) for item in params["args"]
                    )[:500]
                )
        return found

    def requests(self) -> list[str]:
        """Returns the addresses that the page asked for, data within the page left out."""
        seen = (
            event["params"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        )
        return [
            url
            for params in seen
            if not (url := params["request"]["url"]).startswith(("data:", "blob:"))
        ]

    def screenshot(self, path: Path) -> Path:
        """Writes what the window shows as a PNG and returns its path."""
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(picture))
        return path

    def _receive(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(self._in, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)
        self._process.kill()
        self._process.wait()


def artifacts() -> Path:
    """Returns the folder where tests keep pictures for people: BENCHMARK_TEST_ARTIFACTS, or results/test-artifacts."""
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("BENCHMARK_TEST_ARTIFACTS") or root / "results" / "test-artifacts")
