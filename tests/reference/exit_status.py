"""The exit status of a replay command: 0 agrees, 1 differs, 2 cannot be read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn


def end_with(main: Callable[..., int], *given: object) -> NoReturn:
    """Run ``main`` and exit with its status; with 2 and the message where it cannot read."""
    try:
        status = main(*given)
    except SystemExit as end:
        if not isinstance(end.code, str):
            raise
        print(end.code, file=sys.stderr)
        status = 2
    raise SystemExit(status)
