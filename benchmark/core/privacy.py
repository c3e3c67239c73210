"""Keeps the machine out of what is published: no absolute paths, no names of hosts or people."""

from __future__ import annotations

import re
from typing import Any

_PATH = re.compile(r"(?<![\w./:])/(?:[^\s/'\":,;()]+/)+([^\s/'\":,;()]*)")
_DRIVE = re.compile(r"\b[A-Za-z]:\\(?:[^\s\\'\"]+\\)*([^\s\\'\"]*)")
_PERSONAL = {"host", "hostname", "node", "user", "username", "login", "home", "cwd"}


def without_paths(text: str) -> str:
    """Returns ``text`` with absolute paths cut down to their last part: "…/flowers"."""
    return _DRIVE.sub(r"…/\1", _PATH.sub(r"…/\1", text))


def public(value: Any) -> Any:
    """Returns nested data with paths cut and entries about hosts and people left out."""
    if isinstance(value, dict):
        return {
            str(key): public(item)
            for key, item in value.items()
            if str(key).lower() not in _PERSONAL
        }
    if isinstance(value, list | tuple):
        return [public(item) for item in value]
    return without_paths(value) if isinstance(value, str) else value
