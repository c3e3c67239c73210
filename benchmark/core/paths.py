"""Names from outside: can they be a path below a folder, can they be shown?"""

import re
from typing import Any


def leaves_root(name: str) -> bool:
    """Say whether a name cannot be a path below a folder, read as POSIX or as Windows reads it.

    Such names are empty, absolute, climb with ``..`` or hold a NUL.
    """
    parts = re.split(r"[/\\]", name)
    return not parts[0] or ".." in parts or "\0" in name or bool(re.match("[A-Za-z]:", name))


def is_text(name: str) -> bool:
    """Say whether a name can be written to a text file and shown on a terminal.

    Bytes that are not UTF-8 arrive as lone surrogates; control characters could steer a terminal.
    """
    return not re.search(r"[\0-\x1f\x7f-\x9f\ud800-\udfff]", name)


_PERSONAL = {"host", "hostname", "node", "user", "username", "login", "home", "cwd"}
_HOMES = {"home", "users"}  # the folder below one of these is called like a person
# How an absolute path begins: /, ~/, ~name/, file:, sqlite:///, C:\\, \\\\server. A slash inside a
# word, a fraction or the address of a page begins none.
_START = r"(?:file:/*|(?<![A-Za-z])[A-Za-z]{1,20}:///+|(?<![\w.:/\\~…])(?:~[\w.-]*[\\/]|[A-Za-z]:[\\/]|\\\\|/(?=[^\s/])))"
# Folders may have blanks in their names, where a further slash follows; the last part has none.
_PATH = re.compile(_START + r"(?:[^/\\'\":;,()\n]*[/\\])*[^\s/\\'\":;,()]*")
_QUOTED = re.compile(rf"(['\"])({_START}[^'\"\n]*)\1")
_WHOLE = re.compile(_START + r"[^'\":;,()\n]*")


def without_paths(text: str) -> str:
    """Return ``text`` with absolute paths cut to their last part: ``…/flowers``."""
    if _WHOLE.fullmatch(text):
        return _last_part(text)
    text = _QUOTED.sub(lambda match: match[1] + _last_part(match[2]) + match[1], text)
    return _PATH.sub(lambda match: _last_part(match[0]), text)


def public(value: Any) -> Any:
    """Return nested data with paths cut and entries about hosts and people left out."""
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
    *folders, name = [part for part in re.split(r"[/\\]+", path) if part] or [""]
    if folders and folders[-1].lower() in _HOMES:
        return "…"
    return f"…/{name}"
