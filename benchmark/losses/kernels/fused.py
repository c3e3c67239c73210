"""From embeddings to loss and gradient in one step: no score matrix outlives it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class OfEmbeddings(torch.autograd.Function):
    """Weighted sum of score losses of queries (B, D) and references (M, D), or queries alone.

    In an own relation the references are a memory, which the queries rank behind themselves. The
    gradient with respect to the embeddings is worked out in the forward pass, so that only (B, D)
    and (M, D) are kept; the backward pass scales it.
    """

    @staticmethod
    def forward(ctx, embeddings, references, components, relation, generator):
        need_queries, need_references = ctx.needs_input_grad[:2]
        gradient = need_queries or need_references
        with torch.autocast(embeddings.device.type, enabled=False):
            queries = full_precision(embeddings)
            pool = queries if references is None else full_precision(references)
            inside = len(queries) if relation.own and references is not None else 0
            if inside:
                pool = torch.cat([queries, pool.to(queries.dtype)])
            value, slope, radial = _weighted_sum(
                queries, pool, components, relation, gradient, generator
            )
            # comparisons and clamps hide infinities and NaN; one anywhere must show in the value
            value = value + (queries.sum() + pool.sum()) * 0.0
            of_queries = of_references = None
            if need_queries and references is None:
                # d(E E^T) meets both factors: one product with the symmetric sum instead of two
                of_queries = symmetric_sum(slope) @ queries
                if radial is not None:
                    of_queries -= (radial[0] + radial[1]).unsqueeze(1) * queries
            elif need_queries:
                of_queries = slope @ pool
                if radial is not None:
                    of_queries -= radial[0].unsqueeze(1) * queries
                if inside:
                    # queries that are references as well are pulled from that side too
                    of_queries.addmm_(slope[:, :inside].T, queries)
                    if radial is not None:
                        of_queries -= radial[1][:inside].unsqueeze(1) * queries
            if need_references:
                of_references = slope[:, inside:].T @ queries
                if radial is not None:
                    of_references -= radial[1][inside:].unsqueeze(1) * pool[inside:]
        ctx.save_for_backward(of_queries, of_references)
        ctx.types = embeddings.dtype, None if references is None else references.dtype
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        pairs = zip(ctx.saved_tensors, ctx.types, strict=True)
        grads = [None if grad is None else (grad * upstream).to(dtype) for grad, dtype in pairs]
        return *grads, None, None, None


def _weighted_sum(queries, pool, components, relation, gradient, generator):
    """Return the value, its derivative with respect to the scores (Q, R), and what cosines take off
    along queries (Q,) and references (M,), or None without cosines."""
    scores = queries @ pool.T
    value, derivative, radial, cosines = None, None, None, None
    for weight, loss in components:
        if loss.cosine and cosines is None:
            per_query, per_reference = _inverse_lengths(queries), _inverse_lengths(pool)
            cosines = scores * per_query.unsqueeze(1) * per_reference
        term, slope = loss.on_scores(
            cosines if loss.cosine else scores, relation, gradient, generator
        )
        value = term * weight if value is None else value + term * weight
        if not gradient:
            continue
        if weight != 1.0:
            slope *= weight
        if loss.cosine:
            # d(s / |q| / |r|): scaled pull towards the other row, minus the share along the row
            pull = slope * cosines
            along = pull.sum(1) * per_query.square(), pull.sum(0) * per_reference.square()
            radial = along if radial is None else (radial[0] + along[0], radial[1] + along[1])
            slope *= per_query.unsqueeze(1)
            slope *= per_reference
        derivative = slope if derivative is None else derivative.add_(slope)
    return value, derivative, radial


def _inverse_lengths(rows: Tensor) -> Tensor:
    return rows.norm(dim=1).clamp_(min=1e-12).reciprocal_()


def symmetric_sum(matrix: Tensor, tile: int = 512) -> Tensor:
    """Return matrix + its transpose, tile by tile so that transposed reads stay cached."""
    size = len(matrix)
    if size <= tile or matrix.is_cuda:
        return matrix + matrix.T
    result = torch.empty_like(matrix)
    for i in range(0, size, tile):
        rows = slice(i, i + tile)
        for j in range(i, size, tile):
            columns = slice(j, j + tile)
            both = matrix[rows, columns] + matrix[columns, rows].T
            result[rows, columns] = both
            result[columns, rows] = both.T
    return result


def full_precision(values: Tensor) -> Tensor:
    """Return the values, detached, as float64 if they are, else as float32."""
    return values.detach() if values.dtype == torch.float64 else values.detach().float()
