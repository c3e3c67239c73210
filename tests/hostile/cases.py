"""What a case of the corpus is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A hostile file for a target.

    ``words`` is a pattern that the message must match. Without words the file may also be read: it
    is odd but harmless, or is harmless when it is read as it stands.
    """

    target: str
    name: str
    content: bytes
    words: str = ""

    @property
    def label(self) -> str:
        """The name of its test."""
        return f"{self.target}: {self.name}"


def cases(target: str, contents: Mapping[str, bytes | str], words: str = "") -> list[Case]:
    """Return cases of one target that share their words."""
    return [
        Case(target, name, content.encode() if isinstance(content, str) else content, words)
        for name, content in contents.items()
    ]
