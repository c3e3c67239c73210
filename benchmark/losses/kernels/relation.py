"""Which reference is a positive of which query, grouped so that kernels need no padding and no masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.core.errors import RunError

NO_POSITIVE = (
    "no query of this batch has a positive, so a ranking loss is undefined on it; "
    "use a sampler that draws at least two images of a class"
)


@dataclass(frozen=True)
class Group:
    """Queries (g,) that all have the same number n of positives, and their reference columns (g, n).

    ``with_query``: column 0 is the query itself, counted as a positive.
    """

    queries: Tensor
    columns: Tensor
    with_query: bool = False


@dataclass(frozen=True)
class Relation:
    """The positives of ``queries`` queries among ``references`` references.

    ``own`` says that the references begin with the queries themselves (and hold nothing else, unless there
    is a memory), so that entry (i, i) of the score matrix is the query: it never appears in ``groups``.
    Queries without a positive appear in no group.
    """

    groups: tuple[Group, ...]
    queries: int
    references: int
    own: bool

    @property
    def valid(self) -> int:
        """Number of queries that have a positive."""
        return sum(len(group.queries) for group in self.groups)

    @staticmethod
    def from_labels(
        labels: Tensor, reference_labels: Tensor | None, device: torch.device
    ) -> Relation:
        """Returns the relation "same label" of labels (B,) and reference labels (M,); None means own.

        Grouping happens on the CPU because its shapes depend on the data: labels that lie on a GPU have to wait
        for all that it has yet to do, labels kept on the CPU, as training keeps them, wait for nothing.
        """
        labels = labels.cpu()
        if reference_labels is None:
            return Relation._same_label(labels, labels, True, device)
        return Relation._same_label(labels, reference_labels.cpu(), False, device)

    @staticmethod
    def with_memory(labels: Tensor, memory_labels: Tensor, device: torch.device) -> Relation:
        """Returns the relation "same label" of labels (B,) to themselves, then to memory labels (M,)."""
        labels = labels.cpu()
        return Relation._same_label(labels, torch.cat([labels, memory_labels.cpu()]), True, device)

    @staticmethod
    def _same_label(labels: Tensor, pool: Tensor, own: bool, device: torch.device) -> Relation:
        ordered, order = torch.sort(pool, stable=True)
        first = torch.searchsorted(ordered, labels)
        count = torch.searchsorted(ordered, labels, right=True) - first
        groups = []
        for size in torch.unique(count).tolist():
            if size - own <= 0:
                continue
            queries = (count == size).nonzero().squeeze(1)
            columns = order[first[queries].unsqueeze(1) + torch.arange(size)]
            if own:
                columns = columns[columns != queries.unsqueeze(1)].view(len(queries), size - 1)
            groups.append(_to(device, queries, columns))
        return Relation(tuple(groups), len(labels), len(pool), own)

    @staticmethod
    def from_targets(targets: Tensor, own: bool, device: torch.device) -> Relation:
        """Returns the relation of a boolean matrix (Q, R); with ``own`` its diagonal is not looked at."""
        targets = targets.detach().cpu().bool()
        if own:
            targets = targets.clone().fill_diagonal_(False)
        count = targets.sum(1)
        columns = targets.nonzero()[:, 1]
        first = count.cumsum(0) - count
        groups = []
        for size in torch.unique(count).tolist():
            if size:
                queries = (count == size).nonzero().squeeze(1)
                places = first[queries].unsqueeze(1) + torch.arange(size)
                groups.append(_to(device, queries, columns[places]))
        return Relation(tuple(groups), targets.shape[0], targets.shape[1], own)

    def require_positives(self) -> None:
        """Raises RunError when no query has a positive."""
        if not self.groups:
            raise RunError(NO_POSITIVE)

    def blocks(
        self, include_query: bool, elements: int, linear: tuple[int, int] | None = None
    ) -> Iterator[Group]:
        """Yields the groups cut so that queries x positives x references stays near ``elements``.

        ``linear`` (n, m): queries with n positives or more are cut so that queries x references stays near m.

        With ``include_query`` an own query is prepended to its positives (column 0).
        """
        with_query = include_query and self.own
        for group in self.groups:
            size = group.columns.shape[1] + with_query
            step = max(1, elements // (size * self.references))
            if linear is not None and group.columns.shape[1] >= linear[0]:
                step = max(1, linear[1] // self.references)
            for start in range(0, len(group.queries), step):
                queries = group.queries[start : start + step]
                columns = group.columns[start : start + step]
                if with_query:
                    columns = torch.cat([queries.unsqueeze(1), columns], dim=1)
                yield Group(queries, columns, with_query)

    def hidden(self, block: Group) -> Tensor:
        """Returns the columns (b, h) of a block that are not negatives, each once: positives and own entry."""
        if not self.own or block.with_query:
            return block.columns
        return torch.cat([block.queries.unsqueeze(1), block.columns], dim=1)


def _to(device: torch.device, queries: Tensor, columns: Tensor) -> Group:
    if device.type == "cpu":
        return Group(queries, columns)
    return Group(queries.to(device, non_blocking=True), columns.to(device, non_blocking=True))
