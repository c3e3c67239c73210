"""Ranks of positives on a torch device: a stable sort of each block of scores (fast on a GPU)."""

from collections.abc import Iterator

import torch

from benchmark.metrics.ranks import BlockRanks, EmbeddedSet, block_starts

_MATMUL = "highest"


def positive_ranks_on(
    device: str, query: EmbeddedSet, gallery: EmbeddedSet
) -> Iterator[BlockRanks]:
    """Yield the blocks of ``positive_ranks``, computed on ``device``; ties rank by index."""
    rows, classes = _to(device, query)
    items, item_classes = (rows, classes) if gallery is query else _to(device, gallery)
    starts = block_starts(query, gallery)
    size = starts.step
    for start in starts:
        scores = _product(rows[start : start + size], items)
        excluded = 0
        if gallery is query:
            numbers = torch.arange(len(scores), device=device)
            scores[numbers, numbers + start] = -torch.inf
            excluded = 1  # the query itself ranks last and is cut off
        order = scores.sort(dim=1, descending=True, stable=True).indices
        order = order[:, : len(items) - excluded]
        matches = item_classes[order] == classes[start : start + size, None]
        ranks = matches.nonzero()[:, 1] + 1
        yield BlockRanks(matches.sum(dim=1).cpu().numpy(), ranks.cpu().numpy())


def _to(device: str, items: EmbeddedSet) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(items.embeddings).to(device), torch.from_numpy(items.classes).to(device)


def _product(rows: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
    """Return rows @ items.T in full float32, whatever shortcut training may have allowed."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(_MATMUL)
    try:
        return rows @ items.T
    finally:
        torch.set_float32_matmul_precision(before)
