"""Planned looks: the numbers of seeds after which a study's verdicts are read.

``seeds`` of a study file are all that are planned and ``looks`` says how many of them each look
has, as 3, 5 and 10. The grid has the seeds of the present look; ``add-seeds`` goes on to the next.
A block with fewer seeds than a look asks for keeps those it has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmark.core.errors import RunError
from benchmark.core.files import write_json
from benchmark.study.model import Study

FILE = "looks.json"


@dataclass(frozen=True)
class LookState:
    """The present look, from 1, and the day (YYYY-MM-DD) on which each one after the first began.

    ``results/<study>/looks.json``; a study without the file is at its first look.
    """

    look: int = 1
    begun: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> LookState:
        """Return the state in a study's folder."""
        path = Path(folder) / FILE
        if not path.is_file():
            return cls()
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(data["look"], tuple(data["begun"]))

    def write(self, folder: Path) -> None:
        """Write the state into a study's folder."""
        write_json(Path(folder) / FILE, asdict(self))


def looks_problem(looks: Sequence[int], seeds: int) -> str:
    """Return what is wrong with the looks of a study of so many seeds; "" for nothing."""
    rising = list(looks) == sorted(set(looks))
    if not looks or (rising and looks[0] >= 2 and looks[-1] == seeds):
        return ""
    return (
        f"must rise from at least 2 to the number of seeds, {seeds}, such as "
        f"{sorted({min(3, seeds), seeds})}; 'seeds' lists all that are planned"
    )


def at_look(study: Study, look: int) -> Study:
    """Return the study with the seeds of a look; raise RunError for one that is not planned."""
    if not study.looks and look == 1:
        return study
    if look > len(study.looks):
        raise RunError(
            f"study '{study.name}' is at look {look} by {FILE}, and plans {len(study.looks)}; put "
            f"the looks back into {study.path}, or delete the file"
        )
    count = study.looks[look - 1]
    blocks = tuple(
        replace(block, seeds=block.planned_seeds[:count], all_seeds=block.planned_seeds)
        for block in study.blocks
    )
    digest = study.digest
    if look > 1:
        digest = hashlib.sha256(f"{digest} look {look}".encode()).hexdigest()[:16]
    planned = study.planned_seeds
    return replace(
        study, seeds=planned[:count], all_seeds=planned, blocks=blocks, look=look, digest=digest
    )


def at_present_look(study: Study, results: Path) -> Study:
    """Return the study, as it is loaded, at the look that its folder below ``results`` says."""
    return at_look(study, LookState.read(study.folder(results)).look)
