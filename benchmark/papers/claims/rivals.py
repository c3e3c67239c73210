"""Networks of other papers among the arms of a claim: a printed number stands in for their runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmark.core.errors import unknown_name
from benchmark.papers.claims.model import Arm, Claim
from benchmark.papers.numbers import PublishedNumber

PRINTED = "printed"  # the condition; its word is the printed table, "paper/table"


def printed_numbers(
    arm: Arm, dataset: str, protocol: str, metric: str, numbers: Iterable[PublishedNumber]
) -> list[PublishedNumber]:
    """Return the numbers of a printed table that an arm names, under one condition of a claim.

    ``arm.loss`` is the loss of the row, or its method where the suite has no such loss. A protocol
    is that of the number, or the split that the dataset of the number is measured on.
    """
    plain = "" if protocol == "test" else protocol
    return [
        each
        for each in numbers
        if (each.loss, each.metric) == (arm.loss, metric)
        and str(arm.embedding_dim or each.embedding_dim) == each.embedding_dim
        and (
            (each.dataset, each.protocol) == (dataset, plain)
            or f"{each.dataset}_{each.protocol}" == protocol
        )
    ]


def rival_problems(claim: Claim, arm: Arm, numbers: Iterable[PublishedNumber]) -> Iterator[str]:
    """Yield what is wrong with an arm of a printed table; ``numbers`` are those of the paper."""
    numbers = list(numbers)
    tables = {f"{each.source}/{each.table}" for each in numbers}
    table = str(arm.where[PRINTED])
    if claim.kind != "beats" or arm not in claim.second:
        yield f"{claim.name}  a printed number can only be the second of the kind 'beats'"
    if table not in tables:
        yield f"{claim.name}  {unknown_name('printed table', table, tables)}"
        return
    rows = [each for each in numbers if f"{each.source}/{each.table}" == table]
    for scope in claim.published:
        for dataset in scope.datasets:
            for metric in claim.metrics:
                found = printed_numbers(arm, dataset, scope.protocol, metric, rows)
                if len(found) != 1:
                    place = " ".join(filter(None, (dataset, scope.protocol, metric)))
                    yield (
                        f"{claim.name}  {table} prints {len(found)} numbers of {arm.loss} for "
                        f"{place}; an arm needs one (embedding_dim tells several apart)"
                    )
