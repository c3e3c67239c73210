"""Lists of which 'make test' runs a part, and 'make test-long' the rest."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def long_but(quick: Iterable, cases: Iterable) -> list:
    """Return parameters of a test: all cases, those that are not ``quick`` marked as long."""
    chosen = [*quick]
    others = [case if isinstance(case, tuple) else (case,) for case in cases if case not in chosen]
    marked = [pytest.param(*case, marks=pytest.mark.long) for case in others]
    return [*chosen, *marked]
