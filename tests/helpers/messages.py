"""The words of errors stand in one file, ``tests/messages.json``: tests compare codes and keys.

python -m pytest --update-messages tests/unit/study      write anew what these tests say
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark.core.errors import BenchmarkError

SNAPSHOT = Path(__file__).resolve().parents[1] / "messages.json"
# What a new loss or study makes longer: no reason to change a message.
LONG_LIST = re.compile(r"(known|one of): (?:[^,;:\n]+, ){5,}[^,;: \n]+")


class Messages:
    """The messages of one test: ``messages(error)`` returns (code, key) of each problem.

    The whole text of the error is compared with the snapshot, or written to it; folders of the test
    are replaced by names.
    """

    def __init__(self, test: str, folders: dict[str, str], update: bool):
        self.test = test
        self.folders = folders
        self.update = update
        self.told: list[str] = []

    def __call__(self, error: BenchmarkError) -> list[tuple[str, str]]:
        text = str(error)
        for folder, name in self.folders.items():
            text = text.replace(folder, name)
        text = LONG_LIST.sub(r"\1: ...", text)
        self.told.append(text)
        return [(problem.code, problem.key) for problem in error.problems]

    @contextlib.contextmanager
    def raised(self, *problems: tuple[str, str]) -> Iterator[None]:
        """Check that a block raises an error of these problems: (code, key) of each.

        Problems that have neither are in the snapshot alone.
        """
        with pytest.raises(BenchmarkError) as caught:
            yield
        found = [problem for problem in self(caught.value) if any(problem)]
        assert found == [*problems], f"{found} in: {caught.value}"

    def told_numbers(self, text: str) -> list[str]:
        """Compare a text for people with the snapshot, too; return the numbers in it."""
        self.told.append(text)
        return re.findall(r"[−+]?\d+(?:\.\d+)?", text)

    def compare(self) -> None:
        """Compare what was told with the snapshot, or update it."""
        known = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
        if self.update:
            known[self.test] = self.told
            text = json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False)
            SNAPSHOT.write_text(text + "\n", encoding="utf-8")
        else:
            assert self.told == known.get(self.test), (
                "a message changed: see tests/helpers/messages.py"
            )
