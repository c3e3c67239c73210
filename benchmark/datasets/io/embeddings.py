"""Embeddings of others with what is said of their rows, from one file, two, or two of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import Array
from benchmark.datasets.io.arrays import read_arrays
from benchmark.datasets.io.columns import MISSING
from benchmark.metrics.given import check_embeddings, chosen
from benchmark.metrics.rows import Joined
from benchmark.metrics.sets import numbered

SIDES = ("query", "gallery")
COMPARED = ("labels", "cameras", "categories")
ROLES = ("embeddings", *SIDES, *COMPARED, "names")
# Dimensions and kinds of an array that may have a role without its name.
FITTING = {"embeddings": (2, "f"), "labels": (1, "iuUO")}
SHOWN = 20  # arrays of a file in a message
Roles = dict[str, Any]


@dataclass
class Reader:
    """Reads files of embeddings and labels; keeps what the reader of scores must know of them.

    names      role -> name of its array
    labelled   labels are needed
    leave_out  rows without a label are left out; else they are an error
    unused     names of arrays that have no role, or only in one of two files
    left_out   number of rows
    """

    names: Mapping[str, str]
    labelled: bool
    leave_out: bool
    unused: list[str] = field(default_factory=list)
    left_out: int = 0

    def read(self, path: Path, labels: Path | None) -> Roles:
        """Return the arrays by role, None without one; raise DataError for what does not fit."""
        own = read_arrays(path, "embeddings")
        others = {} if labels is None else read_arrays(labels, "labels")
        listed = f"{path} has {_listed(own)}"
        if others:
            listed += f", {labels} has {_listed(others)}"
        for role, name in self.names.items():
            if role not in ROLES or name not in own | others:
                message = f"--key {role}={name}: {listed}; allowed: one of {', '.join(ROLES)}"
                raise DataError(f"{message} = a name of the file")
        asked = others
        if _fitting("embeddings", others, {}):
            if "labels" not in self.names:
                raise DataError(
                    f"{listed}; embeddings come from the first: --key labels=NAME names the one "
                    "array of the second that is used"
                )
            asked = {name: others[name] for name in {*self.names.values()} & {*others}}
        roles: Roles = dict.fromkeys(ROLES)
        for role in ROLES:
            files = [own] if role == "embeddings" else [asked, own]
            found = [
                [arrays[name] for name in fitting]
                for arrays in files
                if (fitting := _fitting(role, arrays, self.names))
            ]
            if len(found) == 2 and role != "labels":
                raise DataError(f"{listed}: both have {role}; leave out one")
            if found and len(found[0]) == 1:
                roles[role] = found[0][0]
            elif role == "embeddings" or (role == "labels" and self.labelled):
                raise DataError(
                    f"{listed}; which are the {role}? Say --key {role}=NAME, or give --labels"
                )
        used = [id(array) for array in roles.values()]
        everything = [*own.items(), *others.items()]
        self.unused += [f"{name:.40}" for name, array in everything if id(array) not in used]
        check_embeddings(roles["embeddings"])
        rows = len(roles["embeddings"])
        of_rows = {role: roles[role] for role in (*COMPARED, "names") if roles[role] is not None}
        for role, array in of_rows.items():
            if array.shape[:1] != (rows,):
                raise DataError(
                    f"{listed}: each row needs one of the {role}; the first line of a table is a "
                    "heading"
                )
        if self.leave_out and "labels" in of_rows:
            missing = _missing(roles["labels"])
            self.left_out += int(missing.sum())
            _keep(roles, ~missing)
        for role in COMPARED:
            if roles[role] is not None:
                _check_complete(f"{labels or path}, {role}", roles[role])
        return roles

    def join(self, queries: Roles, gallery: Roles) -> Roles:
        """Return one set, the queries first; raise DataError for what does not go together."""
        both = (queries, gallery)
        embeddings = [roles["embeddings"] for roles in both]
        masks = [side for side in SIDES for roles in both if roles[side] is not None]
        widths = [each.shape[1] for each in embeddings]
        if masks or widths[0] != widths[1]:
            raise DataError(
                f"--gallery joins all rows of two files; they have {widths} dimensions, which must "
                f"be equal, and give rows as {masks or 'nothing'}, which must not be"
            )
        joined = Joined(*embeddings)
        numbers = np.arange(joined.shape[0])
        query, searched = np.split(numbers, [len(embeddings[0])])
        arrays: Roles = {"embeddings": joined, "query": query, "gallery": searched}
        for role in (*COMPARED, "names"):
            values = [roles[role] for roles in both]
            present = [each for each in values if each is not None]
            if len(present) == 1:
                self.unused.append(f"{role} of one file")
            arrays[role] = None
            if len(present) == 2:
                known: dict[Any, int] = {}
                if role in COMPARED:
                    values = [
                        numbered(f"{side}, {role}", rows, each, known)
                        for side, rows, each in zip(SIDES, embeddings, values, strict=True)
                    ]
                arrays[role] = np.concatenate(values)
        return arrays


def _fitting(role: str, arrays: Mapping[str, Array], names: Mapping[str, str]) -> list[str]:
    """Return the names of the arrays that may have a role: the one called so, else all that fit."""
    if names.get(role, role) in arrays:
        return [names.get(role, role)]
    dimensions, kinds = FITTING.get(role, (0, ""))
    taken = {*ROLES, *names.values()}
    return [
        name
        for name, array in arrays.items()
        if array.ndim == dimensions
        and array.dtype.kind in kinds
        and role not in names
        and name not in taken
    ]


def _listed(arrays: Mapping[str, Array]) -> str:
    texts = [f"{name:.40} {each.dtype!s:.20} {each.shape}" for name, each in arrays.items()]
    more = f" and {len(texts) - SHOWN:,} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def _missing(values: Array) -> Array:
    """Return which values are NaN, None or a text that stands for a missing one."""
    return np.array([str(value).strip().lower() in MISSING for value in values.tolist()])


def _keep(roles: Roles, stays: Array) -> None:
    """Keep the rows that stay; numbers of rows become those among them."""
    place = np.cumsum(stays) - 1
    for role, values in roles.items():
        if values is not None and role in SIDES:
            numbers = chosen(role, values, len(stays))
            roles[role] = place[numbers[stays[numbers]]]
        elif values is not None:
            roles[role] = values[stays]


def _check_complete(what: str, values: Array) -> None:
    rows = np.flatnonzero(_missing(values))
    if len(rows):
        first = ", ".join(f"row {row} has {values[row]!r:.40}" for row in rows[:5].tolist())
        raise DataError(
            f"{what}: {len(rows):,} are missing ({first}; the first row is 0). Give them, and "
            "another name to a class called so; or leave out rows without a label by "
            "--unlabelled leave-out"
        )
