"""Tests of pairs, one file each: functions registered with ``@TESTS.register("name")``.

A test gets the rows of a family, with the columns of ``PAIR``, and the level; it returns ``Found``.
``columns`` declares what it adds to the table of verdicts. The equivalence test decides every pair
that no other test decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.core.registry import Registry, RegistryEntry
from benchmark.verdicts.pairs import FrameColumn
from benchmark.verdicts.verdicts import VERDICT

EQUIVALENCE = "equivalence"
TESTS = Registry("test", __name__, {"columns": {}})


class Found(NamedTuple):
    """What a test finds of a family of N pairs.

    columns  arrays (N,) by name
    why      the reasons (N,) of the verdicts; None where the test decides nothing
    """

    columns: Mapping[str, Any]
    why: NDArray[np.object_]


def tests_in_order() -> list[RegistryEntry]:
    """Return the tests, of which the first that decides a pair counts."""
    return sorted(TESTS, key=lambda entry: entry.name == EQUIVALENCE)


def declared() -> dict[str, FrameColumn]:
    """Return the columns of verdicts: ``VERDICT``, and those that other tests add."""
    columns = dict(VERDICT)
    for entry in TESTS:
        columns |= entry.facts["columns"]
    return columns
