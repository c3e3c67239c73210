"""Which reference is a positive of which query, in groups that need no padding and no masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from benchmark.core.errors import RunError

NO_POSITIVE = (
    "no query of this batch has a positive, so a ranking loss is undefined on it; "
    "use a sampler that draws at least two images of a class"
)


@dataclass(frozen=True)
class Group:
    """Queries (g,) that all have n positives, and the columns (g, n) of these among the references.

    ``with_query``: column 0 is the query itself, counted as a positive.
    """

    queries: Tensor
    columns: Tensor
    with_query: bool = False


@dataclass(frozen=True)
class Level:
    """The relation of a coarser level, without queries that have no positive at the finest.

    Its positives include those of the next finer level: the pairs of equal numbers in
    ``of_queries`` (Q,) and ``of_references`` (R,).
    """

    relation: Relation
    of_queries: Tensor
    of_references: Tensor


@dataclass(frozen=True)
class Relation:
    """The positives of ``queries`` queries among ``references`` references.

    ``own``: the references begin with the queries themselves (and continue with a memory, if there
    is one), so that entry (i, i) of the score matrix is the query. It never appears in ``groups``.
    Queries without a positive appear in no group. ``coarser``: levels of lower relevance, where
    labels have several.

    The queries may be some rows of a batch: ``valid`` is then the number of queries of the whole
    batch that have a positive, and ``totals`` are sums over all its rows that a loss asked for.
    ``diagonal`` is the column of the first query in an own relation; those of the others follow.
    """

    groups: tuple[Group, ...]
    queries: int
    references: int
    own: bool
    valid: int
    coarser: tuple[Level, ...] = ()
    diagonal: int = 0
    class_weights: Tensor | None = None
    totals: Tensor | None = None

    @staticmethod
    def from_targets(targets: Tensor, own: bool, device: torch.device) -> Relation:
        """Return the relation of a boolean matrix (Q, R); with ``own`` its diagonal is ignored."""
        targets = targets.detach().cpu().bool()
        if own:
            targets = targets.clone().fill_diagonal_(False)
        count = targets.sum(1)
        groups = _groups(count.cumsum(0) - count, count, targets.nonzero()[:, 1], None, device)
        valid = int((count > 0).sum())
        return Relation(groups, len(targets), targets.shape[1], own, valid)

    def counts(self, include_query: bool) -> Tensor:
        """Return the number of positives of each query (Q,), 0 for queries of no group."""
        result = torch.zeros(self.queries, dtype=torch.long, device=self.groups[0].queries.device)
        for group in self.groups:
            result[group.queries] = group.columns.shape[1] + (include_query and self.own)
        return result

    def targets(self, include_query: bool) -> Tensor:
        """Return which reference is a positive of which query, boolean (Q, R)."""
        device = self.groups[0].columns.device
        result = torch.zeros(self.queries, self.references, dtype=torch.bool, device=device)
        for block in self.blocks(include_query, result.numel() * self.references):
            result[block.queries] = result[block.queries].scatter_(1, block.columns, True)
        return result

    def blocks(
        self, include_query: bool, elements: int, linear: tuple[int, int] | None = None
    ) -> Iterator[Group]:
        """Yield the groups cut so that queries x positives x references stays near ``elements``.

        ``linear`` (n, m): queries with n positives or more are cut so that queries x references
        stays near m. With ``include_query`` an own query is put before its positives (column 0).
        """
        with_query = include_query and self.own
        for group in self.groups:
            size = group.columns.shape[1] + with_query
            step = max(1, elements // (size * self.references))
            if linear is not None and group.columns.shape[1] >= linear[0]:
                step = max(1, linear[1] // self.references)
            for queries, columns in zip(
                group.queries.split(step), group.columns.split(step), strict=True
            ):
                if with_query:
                    columns = torch.cat([self._own_columns(queries), columns], dim=1)
                yield Group(queries, columns, with_query)

    def hidden(self, block: Group) -> Tensor:
        """Return the columns (b, h) of a block that are no negatives: positives, own entry."""
        if not self.own or block.with_query:
            return block.columns
        return torch.cat([self._own_columns(block.queries), block.columns], dim=1)

    def _own_columns(self, queries: Tensor) -> Tensor:
        return queries.unsqueeze(1) + self.diagonal


def _level_numbers(labels: Tensor) -> list[Tensor]:
    """Return numbers (N,) for each column of labels (N, L), equal where all coarser ones are."""
    columns = range(labels.shape[1])
    return [torch.unique(labels[:, i:], dim=0, return_inverse=True)[1] for i in columns]


@dataclass(frozen=True)
class Positives:
    """Where the positives of each query are: ``count`` (Q,) entries of ``order`` (R,), from
    ``first`` (Q,) on.

    Relations of some of the rows are made from it, so that the positives of all rows are never
    listed at once.
    """

    first: Tensor
    count: Tensor
    order: Tensor
    own: bool
    device: torch.device
    coarser: tuple[tuple[Positives, Tensor, Tensor], ...] = ()

    @staticmethod
    def from_labels(
        labels: Tensor, others: Tensor | None, device: torch.device, *, own: bool | None = None
    ) -> Positives:
        """Return the positives "same label" of labels (B,) among labels (M,) of others.

        Labels (B, L) and (M, L) have a column for each level, the finest first; the relation is
        that of the finest. With ``own`` (the default without others) the labels come first among
        the references themselves. Groups are made on the CPU, because their shapes depend on the
        data: labels on a GPU have to wait for all that it has yet to do, labels on the CPU, where
        training keeps them, wait for nothing.
        """
        labels = labels.cpu()
        own = others is None if own is None else own
        pool = [labels] if own else []
        if others is not None:
            pool.append(others.cpu())
        references = torch.cat(pool)
        if labels.ndim == 1:
            return _sorted(labels, references, own, device)
        (finest, *coarser), size = _level_numbers(torch.cat([labels, references])), len(labels)
        positives = _sorted(finest[:size], finest[size:], own, device)
        levels, finer = [], finest
        for numbers in coarser:
            level = _sorted(numbers[:size], numbers[size:], own, device)
            level = replace(level, count=level.count * positives.have_positive)
            ids = finer.to(device, non_blocking=True)
            levels.append((level, ids[:size], ids[size:]))
            finer = numbers
        return replace(positives, coarser=tuple(levels))

    @property
    def have_positive(self) -> Tensor:
        """Which queries (Q,) have a positive besides themselves."""
        return self.count > int(self.own)

    @cached_property
    def valid(self) -> int:
        """Number of queries that have a positive."""
        return int(self.have_positive.sum())

    @cached_property
    def _class_weights(self) -> Tensor:
        """Weights (Q,) of sum 1 that give every class of the queries the same share."""
        valid = self.have_positive
        queries = torch.bincount(self.first[valid], minlength=len(self.order) + 1)
        weights = valid / (queries[self.first] * (queries > 0).sum()).clamp(min=1).double()
        return weights.to(self.device, non_blocking=True)

    def require_positives(self) -> None:
        """Raise RunError when no query has a positive."""
        if not self.valid:
            raise RunError(NO_POSITIVE)

    def rows(self, start: int, stop: int) -> Relation:
        """Return the relation of the queries ``start`` to ``stop`` to all references."""
        part = slice(start, stop)
        drop = start if self.own else None
        groups = _groups(self.first[part], self.count[part], self.order, drop, self.device)
        levels = (
            Level(level.rows(start, stop), of_queries[part], of_references)
            for level, of_queries, of_references in self.coarser
        )
        return Relation(
            groups,
            stop - start,
            len(self.order),
            self.own,
            self.valid,
            tuple(levels),
            start,
            self._class_weights[part],
        )


def _sorted(labels: Tensor, references: Tensor, own: bool, device: torch.device) -> Positives:
    ordered, order = torch.sort(references, stable=True)
    first = torch.searchsorted(ordered, labels)
    count = torch.searchsorted(ordered, labels, right=True) - first
    return Positives(first, count, order, own, device)


def _groups(
    first: Tensor, count: Tensor, order: Tensor, drop: int | None, device: torch.device
) -> tuple[Group, ...]:
    """Return groups of queries whose columns are ``count`` entries of ``order`` from ``first``.

    ``drop``: the column of the first query, when queries are not among their own columns.
    """
    groups, own = [], drop is not None
    for size in torch.unique(count).tolist():
        if size - own <= 0:
            continue
        queries = (count == size).nonzero().squeeze(1)
        columns = order[first[queries].unsqueeze(1) + torch.arange(size)]
        if drop is not None:
            others = columns != queries.unsqueeze(1) + drop
            columns = columns[others].view(len(queries), size - 1)
        groups.append(
            Group(queries.to(device, non_blocking=True), columns.to(device, non_blocking=True))
        )
    return tuple(groups)
