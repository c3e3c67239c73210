"""The batches that implementations are tried on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import normalize

# Scores of one query must differ by more than float32 rounds them, or they may change places.
SMALLEST_GAP = 4e-6
ATTEMPTS = 200


@dataclass(frozen=True, eq=False)
class Case:
    """A batch: embeddings (B, D) of length 1 and labels (B,), and references (M, D) if any.

    Embeddings are float64 numbers that float32 holds exactly. ``exact``: so are their scores, and
    ties are meant; otherwise no two scores of a query are near each other.
    """

    name: str
    embeddings: Tensor
    labels: Tensor
    references: Tensor | None = None
    reference_labels: Tensor | None = None
    exact: bool = False

    def subset(self, keep: Iterable[int] | Tensor) -> Case:
        """Return the batch with only these rows."""
        index = torch.as_tensor(keep, dtype=torch.long)
        return replace(self, embeddings=self.embeddings[index], labels=self.labels[index])

    def narrowed(self, dim: int) -> Case | None:
        """Return the batch in its first ``dim`` dimensions, None if that makes scores tie."""
        if self.exact or self.references is not None:
            return None
        case = replace(self, embeddings=_rounded(self.embeddings[:, :dim]))
        return case if _keeps_order(case) else None

    @property
    def has_positive(self) -> bool:
        """Whether a query has a positive besides itself."""
        if self.reference_labels is not None:
            return bool(torch.isin(self.labels, self.reference_labels).any())
        return len(torch.unique(self.labels)) < len(self.labels)


def mixed(name: str, classes: Sequence[int], dim: int, seed: int, *, narrow: bool = False) -> Case:
    """Return classes of these sizes around random directions, in random order.

    The ranking is a fair one, far from perfect. With ``narrow`` all scores lie near each other,
    where every sigmoid is in its bend. Large batches cannot keep their scores apart.
    """
    labels = _labels(classes)
    for attempt in range(ATTEMPTS if len(labels) < 100 else 1):
        generator = torch.Generator().manual_seed(1000 * seed + attempt)
        centers = torch.randn(len(classes), dim, generator=generator)
        rows = centers[labels] + 1.2 * torch.randn(len(labels), dim, generator=generator)
        order = torch.randperm(len(labels), generator=generator)
        case = Case(name, _rounded((rows + 8.0 if narrow else rows)[order]), labels[order])
        if _keeps_order(case):
            break
    return case


def in_order(case: Case) -> Case:
    """Return the batch sorted by its labels."""
    return case.subset(case.labels.argsort(stable=True))


def perfect(name: str, classes: Sequence[int]) -> Case:
    """Return classes whose images are equal, at a right angle to those of other classes."""
    labels = _labels(classes)
    return Case(name, torch.eye(len(classes), dtype=torch.float64)[labels], labels, exact=True)


def lattice(name: str, classes: Sequence[int], seed: int, directions: int = 12) -> Case:
    """Return rows among a few directions of which every two have a score of k/2, so that rows are
    repeated within and across classes and most scores are tied."""
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (directions, 4), generator=generator) - 0.5
    choices = torch.cat([signs.double(), torch.eye(4, dtype=torch.float64)])
    labels = _labels(classes)
    pick = torch.randint(0, len(choices), (len(labels),), generator=generator)
    return Case(name, choices[pick], labels, exact=True)


def with_references() -> Case:
    """Return a batch of which the first rows query the others."""
    case = mixed("6 queries, 24 references", [5] * 6, 10, 11)
    rows, labels = case.embeddings, case.labels
    return Case(case.name, rows[:6], labels[:6], rows[6:], labels[6:])


@cache
def ordinary_batches() -> list[Case]:
    """Return batches that every implementation has to take: equal classes, sorted by label."""
    batches = [
        mixed("six classes of four", [4] * 6, 16, 1),
        mixed("scores near each other", [4] * 6, 8, 2, narrow=True),
        mixed("two classes of nine", [9] * 2, 6, 3),
        mixed("thirty pairs", [2] * 30, 32, 4),
        mixed("24 classes of five", [5] * 24, 24, 14),
    ]
    return [in_order(case) for case in batches]


@cache
def unusual_batches() -> dict[str, list[Case]]:
    """Return by check the batches that implementations tend to forget."""
    equal = perfect("all images equal", [4] * 3)
    equal = replace(equal, embeddings=equal.embeddings[:1].repeat(12, 1))
    return {
        "perfect ranking": [
            perfect("six perfect classes of four", [4] * 6),
            perfect("96 perfect classes of four", [4] * 96),
        ],
        "unequal classes": [
            mixed("classes of 7, 5, 4 and 2", [7, 5, 4, 2], 12, 5),
            mixed("classes of 20, 3 and 2", [20, 3, 2], 10, 6, narrow=True),
        ],
        "classes of one image": [
            mixed("classes of 4, 3, 1, 1 and 1", [4, 3, 1, 1, 1], 8, 7),
            mixed("one pair among ten", [2] + [1] * 8, 6, 8, narrow=True),
        ],
        "one class": [
            mixed("eight images of one class", [8], 8, 9),
            mixed("two images of one class", [2], 4, 10),
        ],
        "ties": [lattice("tied scores", [4] * 3, seed, 6) for seed in (1, 2, 3)],
        "duplicates": [*(lattice("repeated images", [4] * 4, seed, 0) for seed in (4, 5)), equal],
    }


def _labels(classes: Sequence[int]) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(classes)), torch.tensor(classes))


def _rounded(rows: Tensor) -> Tensor:
    return normalize(rows, dim=1).float().double()


def _keeps_order(case: Case) -> bool:
    """Say whether rounding leaves the order of the scores of every query as it is."""
    unit = normalize(case.embeddings, dim=1)
    return bool((unit @ unit.T).sort(1).values.diff(dim=1).min() > SMALLEST_GAP)
