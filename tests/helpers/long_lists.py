"""Lists of which 'make test' runs a part, and 'make test-long' the rest."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def long_but(quick: Iterable, cases: Iterable) -> list:
    """Return parameters of a test: all cases, those that are not ``quick`` marked as long."""
    chosen = [*quick]
    marked = [pytest.param(case, marks=pytest.mark.long) for case in cases if case not in chosen]
    return [*chosen, *marked]
