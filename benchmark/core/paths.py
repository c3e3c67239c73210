"""Check names from outside (can they be paths, can they be shown?), and hide private names."""

import re
from typing import Any


def leaves_root(name: str) -> bool:
    """Return whether a name is not a path below a folder, on POSIX or on Windows.

    Such names are empty or absolute, or contain ``..`` or NUL.
    """
    names = re.split(r"[/\\]", name)
    return not names[0] or ".." in names or "\0" in name or bool(re.match("[A-Za-z]:", name))


def is_text(name: str) -> bool:
    """Return whether a name can be written to a text file and shown on a terminal.

    Bytes that are not UTF-8 are read as lone surrogates. Control characters could control a
    terminal.
    """
    return not re.search(r"[\0-\x1f\x7f-\x9f\ud800-\udfff]", name)


_PERSONAL = {"host", "hostname", "node", "user", "username", "login", "home", "cwd"}
_HOMES = {"home", "users"}  # a folder below these has the name of a person
# Begins an absolute path: /, ~/, ~name/, file:, sqlite:///, C:\\, \\\\server. A slash inside a
# word, a fraction or the address of a page does not begin a path.
_START = r"(?:file:/*|(?<![A-Za-z])[A-Za-z]{1,20}:///+|(?<![\w.:/\\~…])(?:~[\w.-]*[\\/]|[A-Za-z]:[\\/]|\\\\|/(?=[^\s/])))"
# Names of folders may have blanks if a slash follows; the last name has none.
_PATH = re.compile(_START + r"(?:[^/\\'\":;,()\n]*[/\\])*[^\s/\\'\":;,()]*")
_QUOTED = re.compile(rf"(['\"])({_START}[^'\"\n]*)\1")
_WHOLE = re.compile(_START + r"[^'\":;,()\n]*")


def without_paths(text: str) -> str:
    """Return ``text`` with only the last name of absolute paths: ``…/flowers``."""
    if _WHOLE.fullmatch(text):
        return _last_part(text)
    text = _QUOTED.sub(lambda match: match[1] + _last_part(match[2]) + match[1], text)
    return _PATH.sub(lambda match: _last_part(match[0]), text)


def public(value: Any) -> Any:
    """Return nested data with short paths, and without entries about hosts and people."""
    if isinstance(value, dict):
        return {
            str(key): public(item)
            for key, item in value.items()
            if str(key).lower().rpartition(".")[2] not in _PERSONAL
        }
    if isinstance(value, list | tuple):
        return [public(item) for item in value]
    return without_paths(value) if isinstance(value, str) else value


def _last_part(path: str) -> str:
    *folders, name = list(filter(None, re.split(r"[/\\]+", path))) or [""]
    if folders and folders[-1].lower() in _HOMES:
        return "…"
    return f"…/{name}"
