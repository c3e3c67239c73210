"""Which reference is a positive of which query, in groups that need no padding and no masks.

A group's queries have equally many positives. Blocks are parts of groups that are small enough for
a cache or a GPU's memory; ``block_losses`` makes the loss of a batch of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from benchmark.core.errors import RunError

NO_POSITIVE = (
    "no query of this batch has a positive, so a ranking loss is undefined on it; "
    "use a sampler that draws at least two images of a class"
)
# On a CPU a block and its scratch copy should stay in the second-level cache of two cores; on a GPU
# a block should be large enough that few kernels are launched.
CPU_ELEMENTS = 2**19
GPU_ELEMENTS = 2**26
# Score of an entry that must not count: far below any cosine, yet finite, so that 0 x score is 0.
HIDDEN = -1e30
# With fewer positives than this, overwriting their scores is cheaper than leaving them out.
LEFT_OUT_FROM = 64


@dataclass(frozen=True)
class Group:
    """Queries (g,) that all have n positives, and the columns (g, n) of these among the references.

    ``with_query``: column 0 is the query itself, counted as a positive.
    """

    queries: Tensor
    columns: Tensor
    with_query: bool = False


@dataclass(frozen=True)
class Relation:
    """The positives of ``queries`` queries among ``references`` references.

    ``own``: the references begin with the queries themselves, and continue with a memory if there
    is one. So entry (i, i) of the score matrix is the query. It never appears in ``groups``. A
    query without a positive appears in no group.

    The queries may be some rows of a batch. Then ``valid`` is the number of queries of the whole
    batch that have a positive, and ``totals`` are sums over all rows that a loss needs first.
    ``diagonal`` is the column of the first query in an own relation. The columns of the other
    queries follow.

    ``coarser``: relations of lower relevance, if labels have several levels, of queries that have a
    positive at the finest level. The positives of a level include those of the next finer level,
    which are the pairs of equal numbers in ``ids`` of queries (Q,) and references (R,).
    """

    groups: tuple[Group, ...]
    queries: int
    references: int
    own: bool
    valid: int
    coarser: tuple[Relation, ...] = ()
    ids: tuple[Tensor, Tensor] | None = None
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
        first = count.cumsum(0) - count
        columns = targets.nonzero()[:, 1]
        groups = _groups(first, count, columns, None, device)
        valid = int((count > 0).sum())
        return Relation(groups, len(targets), targets.shape[1], own, valid)

    def counts(self, include_query: bool) -> Tensor:
        """Return the number of positives of each query (Q,), 0 for queries of no group."""
        device = self.groups[0].queries.device
        result = torch.zeros(self.queries, dtype=torch.long, device=device)
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
                block = Group(queries, columns, with_query)
                yield replace(block, columns=self.with_own(block)) if with_query else block

    def with_own(self, block: Group) -> Tensor:
        """Return the columns (b, n + 1) of a block behind those of its queries themselves."""
        return torch.cat([block.queries.unsqueeze(1) + self.diagonal, block.columns], dim=1)


@dataclass(frozen=True)
class Positives:
    """The positives of each query: ``count`` (Q,) entries of ``order`` (R,) from ``first`` (Q,) on.

    Relations of some of the rows are made from it, so that the positives of all rows are never
    listed at once. ``ids`` and ``coarser`` as in ``Relation``.
    """

    first: Tensor
    count: Tensor
    order: Tensor
    own: bool
    device: torch.device
    ids: tuple[Tensor, Tensor] | None = None
    coarser: tuple[Positives, ...] = ()

    @staticmethod
    def from_labels(
        labels: Tensor, others: Tensor | None, device: torch.device, *, own: bool
    ) -> Positives:
        """Return the positives "same label" of labels (B,) among labels (M,) of others.

        Labels (B, L) and (M, L) have a column for each level, the finest first; the relation is
        that of the finest. With ``own`` the references begin with the labels themselves. Groups are
        made on the CPU, because their shapes depend on the data. Training keeps labels on the CPU,
        so that nothing waits. Labels on a GPU would wait for all earlier work of the GPU.
        """
        labels = labels.cpu()
        size = len(labels)
        pool = [labels] if own else []
        if others is not None:
            pool.append(others.cpu())
        everything = torch.cat([labels, *pool])
        numbers = [everything]
        if labels.ndim > 1:
            numbers = []
            for column in range(labels.shape[1]):
                # equal numbers: equal labels in this column and in all coarser ones
                distinct = torch.unique(everything[:, column:], dim=0, return_inverse=True)
                numbers.append(distinct[1])
        levels: list[Positives] = []
        for number, finer in zip(numbers, [None, *numbers], strict=False):
            queries = number[:size]
            ordered, order = torch.sort(number[size:], stable=True)
            first = torch.searchsorted(ordered, queries)
            count = torch.searchsorted(ordered, queries, right=True) - first
            level = Positives(first, count, order, own, device)
            if finer is not None:
                ids = finer.to(device, non_blocking=True)
                count = count * levels[0].have_positive
                level = replace(level, count=count, ids=(ids[:size], ids[size:]))
            levels.append(level)
        return replace(levels[0], coarser=tuple(levels[1:]))

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
        classes = (queries > 0).sum()
        shares = (queries[self.first] * classes).clamp(min=1)
        weights = valid / shares.double()
        return weights.to(self.device, non_blocking=True)

    def require_positives(self) -> None:
        """Raise RunError when no query has a positive."""
        if not self.valid:
            raise RunError(NO_POSITIVE)

    def rows(self, tile: slice) -> Relation:
        """Return the relation of the queries of a tile to all references."""
        drop = tile.start if self.own else None
        groups = _groups(self.first[tile], self.count[tile], self.order, drop, self.device)
        return Relation(
            groups,
            tile.stop - tile.start,
            len(self.order),
            self.own,
            self.valid,
            tuple(level.rows(tile) for level in self.coarser),
            self.ids and (self.ids[0][tile], self.ids[1]),
            tile.start,
            self._class_weights[tile],
        )


def _groups(
    first: Tensor, count: Tensor, order: Tensor, drop: int | None, device: torch.device
) -> tuple[Group, ...]:
    """Return groups of queries whose columns are ``count`` entries of ``order`` from ``first``.

    ``drop``: the column of the first query, when queries are not among their own columns.
    """
    groups = []
    for size in torch.unique(count).tolist():
        if size <= (drop is not None):
            continue
        queries = (count == size).nonzero().squeeze(1)
        columns = order[first[queries].unsqueeze(1) + torch.arange(size)]
        if drop is not None:
            others = columns != queries.unsqueeze(1) + drop
            columns = columns[others].view(len(queries), size - 1)
        target: Any = {"device": device, "non_blocking": True}
        groups.append(Group(queries.to(**target), columns.to(**target)))
    return tuple(groups)


def block_losses(
    scores: Tensor,
    relation: Relation,
    blocks: Iterable[Group],
    read: Callable[[Group], tuple[Tensor, Tensor]],
    evaluate: Callable[[Group, Tensor, Tensor], tuple[Tensor, ...]],
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return losses (Q,) and their derivative (Q, R), both 0 for queries of no block.

    ``read`` returns a copy of a block's rows of scores (b, R), and the scores of its positives
    (b, P). ``evaluate`` takes the scores of positives (b, P) and negatives (b, N), and returns the
    losses (b,), with ``gradient`` the derivatives with respect to both as well. A negative of
    HIDDEN does not count as an item.
    """
    values = scores.new_zeros(relation.queries)
    derivative = torch.zeros_like(scores) if gradient else None
    for block in blocks:
        rows, positives = read(block)
        own_apart = relation.own and not block.with_query  # neither positive nor negative
        hidden = relation.with_own(block) if own_apart else block.columns
        columns = None
        if hidden.shape[1] < LEFT_OUT_FROM:
            negatives = rows.scatter_(1, hidden, HIDDEN)
        else:
            counted = torch.ones(rows.shape, dtype=torch.bool, device=rows.device)
            counted.scatter_(1, hidden, False)
            # a stable descending sort of flags lists the counted columns first, without asking the
            # device
            order = torch.sort(counted, dim=1, descending=True, stable=True).indices
            columns = order[:, : rows.shape[1] - hidden.shape[1]]
            negatives = rows.gather(1, columns)
        losses, *slopes = evaluate(block, positives, negatives)
        values[block.queries] = losses
        if derivative is not None:
            of_positives, of_negatives = slopes
            if columns is not None:
                of_negatives = rows.zero_().scatter_(1, columns, of_negatives)
            derivative[block.queries] = of_negatives.scatter_(1, block.columns, of_positives)
    return values, derivative


def block_elements(device: torch.device) -> int:
    """Return the number of elements that a temporary tensor may have on ``device``."""
    return GPU_ELEMENTS if device.type == "cuda" else CPU_ELEMENTS


def slices(size: int, step: int) -> list[slice]:
    """Return slices of ``range(size)`` of ``step`` numbers, at least 1, each."""
    step = max(1, step)
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def chunks(size: int, width: int, elements: int) -> list[slice]:
    """Return slices of ``range(size)``, of ``elements / width``, at least 1, each."""
    return slices(size, elements // max(1, width))


def count_at_least(items: Tensor, bounds: Tensor) -> Tensor:
    """Return how many items along the last axis are at or above their bound, as floating point."""
    # a floating-point result keeps comparison and sum vectorised, which a boolean sum is not
    return torch.ge(items, bounds, out=items.new_empty(0)).sum(-1)


def at_or_above(ascending: Tensor, bounds: Tensor) -> Tensor:
    """Return the same (b, m) of ascending rows (b, n), whose bounds are (b, m)."""
    return (ascending.shape[1] - torch.searchsorted(ascending, bounds)).to(bounds.dtype)


def flush_tails(logits: Tensor) -> Tensor:
    """Return ``logits`` with HIDDEN where the sigmoid is negligible, in place; NaN stays.

    Below the bound a sigmoid, or its square, is denormal, and CPUs take a hundred times longer for
    denormal numbers. The dropped values are under 5e-18 in float32 and 1e-147 in float64, in sums
    that are at least 0.5.
    """
    bound = -340.0 if logits.dtype == torch.float64 else -40.0
    return torch.threshold_(logits, bound, HIDDEN)
