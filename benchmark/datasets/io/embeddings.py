"""Embeddings of others with what is said of their rows, from one file, two, or two of each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import Array
from benchmark.core.words import first_of
from benchmark.datasets.io.arrays import read_arrays
from benchmark.datasets.io.columns import MISSING
from benchmark.metrics.given import check_embeddings, chosen
from benchmark.metrics.rows import Joined

SIDES = ("query", "gallery")
OF_ROWS = ("labels", "cameras", "categories", "names")
ROLES = ("embeddings", *SIDES, *OF_ROWS)
SPLIT = "split"  # a role of rows that train and test
# Dimensions and kinds of an array that may have a role without its name.
FITTING = {"embeddings": (2, "f"), "labels": (1, "iuUO")}
Roles = dict[str, Any]


def read_roles(
    path: Path,
    labels: Path | None,
    names: Mapping[str, str],
    *,
    labelled: bool,
    leave_out: bool,
    split: bool = False,
) -> tuple[Roles, list[str]]:
    """Return the arrays of a file of embeddings, and one of labels, by role; and what is not used.

    names      role -> name of its array
    labelled   labels are needed
    leave_out  rows without a label are left out, else they are an error
    split      SPLIT is a role as well

    A role that no array has is None. Raise DataError for what does not fit.
    """
    of_rows = (*(SPLIT,) * split, *OF_ROWS)
    known = ("embeddings", *SIDES, *of_rows)
    own = read_arrays(path, "embeddings")
    others = {} if labels is None else read_arrays(labels, "labels")
    listed = f"{path} has {_listed(own)}"
    if others:
        listed += f"; {labels} has {_listed(others)}"
    for role, name in names.items():
        if role not in known or name not in own | others:
            message = f"--key {role}={name}: {listed}; allowed: one of {', '.join(known)}"
            raise DataError(f"{message} = a name of the file")
    asked = others
    if _fitting("embeddings", others, {}):
        if "labels" not in names:
            raise DataError(
                f"{listed}; embeddings come from the first: --key labels=NAME names the one array "
                "of the other that is used"
            )
        asked = {name: each for name, each in others.items() if name in names.values()}
    roles: Roles = {}
    for role in known:
        fitting = _fitting(role, own, names)
        if role != "embeddings":
            fitting = _fitting(role, asked, names) or fitting
        roles[role] = fitting[0] if len(fitting) == 1 else None
        needed = role == "embeddings" or (role == "labels" and labelled)
        if needed and roles[role] is None:
            other = "give a second file" if role == "labels" else "save them as .npy"
            message = f"{listed}; which are the {role}? Say --key {role}=NAME, or {other}"
            raise DataError(message)
    used = [id(array) for array in roles.values()]
    unused = []
    for arrays in (own, others):
        unused += [f"{name:.40}" for name, array in arrays.items() if id(array) not in used]
    for name in unused:
        role = name.strip().lower()
        if role in known and name != role and role not in names:
            raise DataError(f"{listed}; is {name!r} meant as {role}? Say --key {role}={name}")
    rows = roles["embeddings"].shape[:1]
    for role in of_rows:
        if roles[role] is not None and roles[role].shape[:1] != rows:
            raise DataError(f"{listed}; each row needs one of the {role}, below the heading")
    stays = np.ones(rows, bool)
    if leave_out:
        stays = ~_missing(roles["labels"])
    for role in of_rows[:-1]:
        values = roles[role]
        if values is None:
            continue
        texts = set(map(str, values.tolist()))
        for text in texts:
            if f"{text}.0" in texts:
                raise DataError(f"{labels or path}: {role} have {text:.40} and {text:.40}.0")
        broken = np.flatnonzero(_missing(values) & stays).tolist()
        if broken:
            first = ", ".join(f"row {row}: {str(values[row])!r:.40}" for row in broken[:5])
            raise DataError(
                f"{labels or path}: {len(broken):,} {role} are missing ({first}; the first row is "
                "0). Give them, and another name to a class called so; --unlabelled leave-out "
                "leaves out rows without a label"
            )
    if not stays.all():
        unused.append(f"{(~stays).sum():,} rows without a label")
        _keep(roles, stays)
    check_embeddings(roles["embeddings"])
    return roles, unused


def joined(queries: Roles, gallery: Roles, unused: list[str]) -> Roles:
    """Return one set, the queries first; add roles of one file to ``unused``.

    Raise DataError for what does not go together.
    """
    both = (queries, gallery)
    embeddings = [roles["embeddings"] for roles in both]
    widths = [each.shape[1] for each in embeddings]
    sides = [side for side in SIDES for roles in both if roles[side] is not None]
    if sides:
        raise DataError(f"--gallery says which rows search; leave it out, or {sides} of a file")
    if widths[0] != widths[1]:
        raise DataError(f"queries have {widths[0]} dimensions, the gallery {widths[1]}")
    roles: Roles = {"embeddings": Joined(*embeddings)}
    numbers = np.arange(roles["embeddings"].shape[0])
    roles["query"], roles["gallery"] = np.split(numbers, [len(embeddings[0])])
    for role in OF_ROWS:
        # lists, because numpy makes text or float64 of two types
        values = [each[role].tolist() for each in both if each[role] is not None]
        roles[role] = values[0] + values[1] if len(values) == 2 else None
        if len(values) == 1:
            unused.append(f"{role} of one file")
    return roles


def _fitting(role: str, arrays: Mapping[str, Array], names: Mapping[str, str]) -> list[Array]:
    """Return the arrays that may have a role: the one of this name, else all that fit."""
    name = names.get(role, role)
    if name in arrays or role in names or role not in FITTING:
        return [array for each, array in arrays.items() if each == name]
    taken = {*ROLES, SPLIT, *names.values()}
    dimensions, kinds = FITTING[role]
    found = [array for each, array in arrays.items() if each not in taken]
    return [each for each in found if each.ndim == dimensions and each.dtype.kind in kinds]


def _listed(arrays: Mapping[str, Array]) -> str:
    texts = [f"{name:.40} {each.dtype!s:.20} {each.shape}" for name, each in arrays.items()]
    return ", ".join(first_of(texts))


def _missing(values: Array) -> Array:
    """Return which values are NaN, None or a text that stands for a missing one.

    A row of a matrix is a set of labels, and missing if it is empty.
    """
    if values.ndim == 2:
        return np.array([not any(row) for row in values.tolist()], bool)
    return np.array([str(text).strip().lower() in MISSING for text in values.tolist()], bool)


def _keep(roles: Roles, stays: Array) -> None:
    """Keep the rows that stay; numbers of rows become those among them."""
    place = np.cumsum(stays) - 1
    for role, values in roles.items():
        if values is not None and role in SIDES:
            numbers = chosen(role, values, len(stays))
            roles[role] = place[numbers[stays[numbers]]]
        elif values is not None:
            roles[role] = values[stays]
