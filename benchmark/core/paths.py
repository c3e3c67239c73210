"""Names from outside: can they be a path below a folder, can they be shown?"""

from pathlib import PurePosixPath, PureWindowsPath


def leaves_root(name: str) -> bool:
    """Say whether a name cannot be a path below a folder, read as POSIX or as Windows reads it.

    Such names are empty, absolute, climb with ``..`` or hold a NUL.
    """
    if name and not any(mark in name for mark in ("..", ":", "\0")) and name[0] not in "/\\":
        return False
    windows = PureWindowsPath(name)
    return (
        not name
        or "\0" in name
        or PurePosixPath(name).is_absolute()
        or bool(windows.anchor)
        or ".." in windows.parts
    )


def is_text(name: str) -> bool:
    """Say whether a name can be written to a text file and shown on a terminal.

    Bytes that are not UTF-8 arrive as lone surrogates; control characters could steer a terminal.
    """
    return name.isprintable() or not any(
        ord(letter) < 32 or 127 <= ord(letter) < 160 or 0xD800 <= ord(letter) < 0xE000
        for letter in name
    )
