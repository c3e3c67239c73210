"""The scores of a block's negatives, as the kernels want them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.losses.kernels.blocks import HIDDEN
from benchmark.losses.kernels.relation import Group, Relation

# With fewer positives than this, overwriting them is cheaper than leaving them out.
MANY = 64


@dataclass(frozen=True)
class Negatives:
    """Scores (b, w) of the negatives of b queries; entries of HIDDEN stand for items that are none.

    ``columns`` (b, w) are their references, or None when w is the number of references.
    """

    scores: Tensor
    columns: Tensor | None

    @staticmethod
    def of(rows: Tensor, relation: Relation, block: Group) -> Negatives:
        """Returns the negatives among the rows (b, R) of a block; may overwrite the rows."""
        hidden = relation.hidden(block)
        if hidden.shape[1] < MANY:
            return Negatives(rows.scatter_(1, hidden, HIDDEN), None)
        keep = torch.ones(rows.shape, dtype=torch.bool, device=rows.device).scatter_(
            1, hidden, False
        )
        # a stable descending sort of flags lists the kept columns first, without a count from the device
        columns = torch.sort(keep, dim=1, descending=True, stable=True).indices[
            :, : rows.shape[1] - hidden.shape[1]
        ]
        return Negatives(rows.gather(1, columns), columns)

    def place(self, values: Tensor, spare: Tensor) -> Tensor:
        """Returns values (b, w) at their references (b, R), 0 elsewhere; may overwrite ``spare`` (b, R)."""
        return values if self.columns is None else spare.zero_().scatter_(1, self.columns, values)
