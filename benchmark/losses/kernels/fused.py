"""From embeddings to loss and gradient in one step: no score matrix outlives it."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from benchmark.losses.kernels.relation import Positives, slices

# Up to this many scores all are held at once. Beyond, some rows are held at a time. The time
# changes little: three matrix products instead of two, but scores stay nearer to the processor.
DENSE_ENTRIES = 2**26
TILE_ENTRIES = 2**24
# Rows come in multiples of this. A CPU makes normal numbers 16 at a time. So the numbers drawn tile
# by tile are the numbers that would be drawn for all rows.
ROWS = 16
SIDE = 512  # of a tile of a symmetric sum
LARGEST_KEPT = 2**25 - 2**12  # bytes; the C library of Linux keeps no larger blocks for later

# A value, its derivative with respect to scores (Q, R), and what cosines take off along queries
# (Q,) and references (R,), or None without cosines.
WeightedSum = tuple[Tensor, Tensor | None, tuple[Tensor, Tensor] | None]
# A value, and its gradients with respect to queries (B, D) and references (M, D) where needed.
ValueAndGradients = tuple[Tensor, Tensor | None, Tensor | None]


def row_tiles(queries: int, references: int, rows: int | None) -> list[slice]:
    """Return the rows of each tile of scores, ``rows`` in each.

    Without ``rows``: one tile up to DENSE_ENTRIES scores, else tiles of about TILE_ENTRIES.
    """
    if rows is None:
        dense = queries * references <= DENSE_ENTRIES
        rows = queries if dense else max(1, TILE_ENTRIES // references // ROWS) * ROWS
    return slices(queries, rows)


def widened(values: Tensor) -> Tensor:
    """Return the values as float64 if they are, else as float32; autograd goes through."""
    return values if values.dtype == torch.float64 else values.float()


class OfEmbeddings(torch.autograd.Function):
    """Weighted sum of score losses of queries (B, D) and references (M, D), or queries alone.

    If ``positives.own``, the references are a memory: queries rank themselves first, then the
    memory. The forward pass computes the gradient with respect to the embeddings, so that only
    (B, D) and (M, D) are kept. The backward pass scales this gradient. A tile holds whole rows of
    scores, which is all that the loss of a query needs. So one pass over the tiles gives the loss
    and its derivative.
    """

    @staticmethod
    def forward(ctx, embeddings, references, components, positives, tiles, generator):
        needs = ctx.needs_input_grad[:2]
        queries = widened(embeddings.detach())
        alone = references is None
        pool = queries if alone else widened(references.detach())
        inside = len(queries) if positives.own else 0  # references that are queries
        if inside and not alone:
            pool = torch.cat([queries, pool.to(queries.dtype)])
        rows = BlockRows(queries, pool, components, positives, any(needs), generator)
        if len(tiles) == 1:
            value, *gradients = rows.at_once(alone, inside, needs)
        else:
            value, *gradients = rows.in_tiles(tiles, inside, needs)
        # comparisons and clamps hide infinities and NaN; one anywhere must show in the value
        value = value + (queries.sum() + pool.sum()) * 0.0
        ctx.save_for_backward(*gradients)
        ctx.types = embeddings.dtype, None if alone else references.dtype
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        grads = []
        for grad, dtype in zip(ctx.saved_tensors, ctx.types, strict=True):
            grads.append(None if grad is None else (grad * upstream).to(dtype))
        return *grads, None, None, None, None


@dataclass(frozen=True)
class BlockRows:
    """Queries (B, D), what they rank (R, D), and the losses of their rows of scores."""

    queries: Tensor
    pool: Tensor
    components: Sequence[tuple[float, Any]]
    positives: Positives
    gradient: bool
    generator: torch.Generator | None

    def sums(self, tile: slice, totals: Mapping[int, Tensor]) -> WeightedSum:
        """Return the share of the loss of the rows of a tile, and its derivatives."""
        relation = self.positives.rows(tile)
        queries = self.queries[tile]
        scores = queries @ self.pool.T
        value = scores.new_zeros(())
        cosines = None
        derivative = None
        radial: tuple[Tensor, Tensor] | None = None
        for number, (weight, loss) in enumerate(self.components):
            if loss.cosine and cosines is None:
                cosines, per_query, per_reference = self._cosines(scores, queries)
            if number in totals:
                relation = replace(relation, totals=totals[number])
            term, slope = loss.on_scores(
                cosines if loss.cosine else scores, relation, self.gradient, self.generator
            )
            value = value + term * weight
            if slope is None:  # no gradient is asked for
                continue
            if weight != 1.0:
                slope *= weight
            if cosines is not None and loss.cosine:
                # d(s / |q| / |r|): scaled pull towards the other row, minus the share along the row
                pull = slope * cosines
                of_queries = pull.sum(1) * per_query.square()
                of_references = pull.sum(0) * per_reference.square()
                if radial is not None:
                    of_queries = radial[0] + of_queries
                    of_references = radial[1] + of_references
                radial = (of_queries, of_references)
                slope *= per_query.unsqueeze(1)
                slope *= per_reference
            derivative = slope if derivative is None else derivative.add_(slope)
        return value, derivative, radial

    def _cosines(self, scores: Tensor, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return cosines, and one over the lengths of queries and references."""
        per_query = _one_over_lengths(queries)
        per_reference = _one_over_lengths(self.pool)
        return scores * per_query.unsqueeze(1) * per_reference, per_query, per_reference

    def at_once(self, alone: bool, inside: int, needs: Sequence[bool]) -> ValueAndGradients:
        """Return the value and both gradients from all scores; ``alone``: no references given."""
        queries = self.queries
        pool = self.pool
        value, slope, radial = self.sums(slice(0, len(queries)), {})
        of_queries = of_references = None
        if slope is None:
            return value, None, None
        if needs[0] and alone:
            # d(E E^T) meets both factors: one product with the symmetric sum instead of two
            of_queries = symmetric_sum(slope) @ queries
            if radial is not None:
                of_queries -= (radial[0] + radial[1]).unsqueeze(1) * queries
        elif needs[0]:
            of_queries = slope @ pool
            if radial is not None:
                of_queries -= radial[0].unsqueeze(1) * queries
            if inside:
                # queries that are references as well are pulled from that side too
                of_queries.addmm_(slope[:, :inside].T, queries)
                if radial is not None:
                    of_queries -= radial[1][:inside].unsqueeze(1) * queries
        if needs[1]:
            of_references = slope[:, inside:].T @ queries
            if radial is not None:
                of_references -= radial[1][inside:].unsqueeze(1) * pool[inside:]
        return value, of_queries, of_references

    def in_tiles(
        self, tiles: Sequence[slice], inside: int, needs: Sequence[bool]
    ) -> ValueAndGradients:
        """Return the same from some rows of scores at a time."""
        _keep_freed_memory()
        queries = self.queries
        pool = self.pool
        asking = [i for i, (_, loss) in enumerate(self.components) if loss.needs_totals]
        totals: dict[int, Tensor] = {}
        for tile in tiles if asking else ():
            relation = self.positives.rows(tile)
            scores = queries[tile] @ pool.T
            for number in asking:
                loss = self.components[number][1]
                seen = self._cosines(scores, queries[tile])[0] if loss.cosine else scores
                total = loss.totals(seen, relation)
                totals[number] = totals[number] + total if number in totals else total
        first = 0 if needs[0] else inside
        last = len(pool) if needs[1] else inside
        pulled = slice(first, last)
        of_pool = torch.zeros_like(pool[pulled])  # no rows without a gradient
        shared = inside and needs[0]
        of_queries = of_pool[: len(queries)] if shared else torch.zeros_like(queries)
        value = queries.new_zeros(())
        for tile in tiles:
            term, slope, radial = self.sums(tile, totals)
            value += term
            if slope is None:
                continue
            of_pool.addmm_(slope[:, pulled].T, queries[tile])
            if needs[0]:
                of_queries[tile].addmm_(slope, pool)
            if radial is not None:
                of_pool -= radial[1][pulled].unsqueeze(1) * pool[pulled]
                of_queries[tile] -= radial[0].unsqueeze(1) * queries[tile]
        of_references = of_pool[inside - first :] if needs[1] else None
        return value, of_queries if needs[0] else None, of_references


def _one_over_lengths(rows: Tensor) -> Tensor:
    return rows.norm(dim=1).clamp_(min=1e-12).reciprocal_()


@functools.cache
def _keep_freed_memory() -> None:
    """Let the C library of Linux keep the memory of temporaries from one tile to the next.

    The library keeps blocks up to the size of the largest that it has seen freed. If that was
    small, each temporary of a tile takes new pages from the system: SupAP at 16,384 took 1.8 times
    as long.
    """
    torch.empty(LARGEST_KEPT, dtype=torch.uint8, device="cpu")


def symmetric_sum(matrix: Tensor) -> Tensor:
    """Return matrix + its transpose, tile by tile so that transposed reads stay cached."""
    size = len(matrix)
    if size <= SIDE or matrix.is_cuda:
        return matrix + matrix.T
    result = torch.empty_like(matrix)
    for i in range(0, size, SIDE):
        rows = slice(i, i + SIDE)
        for j in range(i, size, SIDE):
            columns = slice(j, j + SIDE)
            both = matrix[rows, columns] + matrix[columns, rows].T
            result[rows, columns] = both
            result[columns, rows] = both.T
    return result
