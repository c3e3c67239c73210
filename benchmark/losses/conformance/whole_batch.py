"""The gradient of a whole batch through a small network, and how that of a step differs from it.

The gradient is a sum over rows: each row's slope of the loss, carried back to the parameters. There
are more parameters than rows, so that the factor of each row can be solved from a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, normalize
from torch.nn.utils import parameters_to_vector

from benchmark.losses import create_loss
from benchmark.losses.conformance.formulas import Case, Mismatch, Reference

DIM = 16
TOLERANCE = 1e-6  # of the length of a gradient: embeddings may be kept in float32
OWN_LOSS = "own loss"  # kind of mismatch
Loss = Callable[..., Tensor]


class SmallNetwork(nn.Module):
    """A small network in float64 that notes what passes through it.

    ``passes`` has the images of each pass with gradients; ``kept`` the factors (DIM,) that dropout
    drew last for an image; ``redrawn`` says whether an image had others before.
    """

    def __init__(self, *inner: nn.Module, rate: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        layers = (nn.Linear(DIM, DIM), *inner, nn.Tanh(), nn.Linear(DIM, DIM // 2))
        self.layers = nn.Sequential(*layers).double()
        self.rate = rate
        self.passes: list[Tensor] = []
        self.kept: dict[tuple[float, ...], Tensor] = {}
        self.redrawn = False

    def forward(self, images: Tensor) -> Tensor:
        """Return rows (B, DIM / 2) of length 1."""
        if torch.is_grad_enabled():
            self.passes.append(images.detach())
        if self.rate:
            drawn = dropout(torch.ones_like(images), self.rate, self.training)
            for image, factors in zip(images.tolist(), drawn, strict=True):
                before = self.kept.get(tuple(image), factors)
                self.redrawn |= not torch.equal(before, factors)
                self.kept[tuple(image)] = factors
            images = images * drawn
        return normalize(self.layers(images), dim=1)

    def gradient(self, value: Tensor) -> Tensor:
        """Return the gradient (P,) of a number."""
        return parameters_to_vector(
            torch.autograd.grad(value, list(self.parameters()), retain_graph=True)
        )

    def parts(self, case: Case) -> list[list[int]]:
        """Return the rows of the batch in each pass that had gradients."""
        found = []
        for images in self.passes:
            rows = (images.unsqueeze(1) == case.embeddings).all(2).nonzero()[:, 1].tolist()
            if rows not in found:
                found.append(rows)
        return found

    def without_dropout(self, case: Case) -> Case:
        """Return the batch as dropout left it in the last passes, and drop no more."""
        self.rate = 0.0
        all_kept = torch.ones(DIM)
        factors = [self.kept.get(tuple(image), all_kept) for image in case.embeddings.tolist()]
        return replace(case, embeddings=case.embeddings * torch.stack(factors))


def handed_loss(reference: Reference) -> Loss:
    """Return the loss that a step is given; it is 0 where no row has a positive."""
    loss = create_loss(reference.name, **reference.options)

    def value(*batch: Any) -> Tensor:
        if not Case("", *batch).has_positive:
            return batch[0].sum() * 0.0
        return loss(*batch, generator=torch.Generator().manual_seed(0))

    return value


def with_memory(loss: Loss, batch: Sequence[Tensor], memory: Sequence[Tensor]) -> Iterator[Tensor]:
    """Yield the losses that steps take of a batch and the last rows of a memory."""
    for start in range(len(memory[0])):
        last = [part[start:] for part in memory]
        together = [torch.cat(pair) for pair in zip(batch, last, strict=True)]
        yield loss(*together)
        yield loss(*batch, *together)
        yield loss(*batch, *last)


def equal(given: Tensor, wanted: Tensor) -> bool:
    """Return whether two gradients are equal up to rounding."""
    return bool((given - wanted).norm() <= TOLERANCE * wanted.norm())


def difference(
    network: SmallNetwork,
    case: Case,
    loss: Loss,
    given: Tensor,
    parts: list[list[int]],
    unit: str = "parts",
) -> Mismatch | None:
    """Return how a gradient (P,) differs from that of the whole batch, or None.

    ``parts`` are rows whose own loss may have been taken, called ``unit`` in words.
    """
    embeddings = network(case.embeddings)
    value = loss(embeddings, case.labels)
    (slopes,) = torch.autograd.grad(value, embeddings, retain_graph=True)
    rows = torch.stack([network.gradient(row) for row in (embeddings * slopes).sum(1)])
    whole = rows.sum(0)
    if equal(given, whole):
        return None
    if not given.isfinite().all():
        return Mismatch("the gradient is not finite")
    if not given.any():
        return Mismatch("no gradient reaches the parameters")
    count = len(parts)
    once = f"by the number of {unit} once too often"
    causes = {f"{count}": f": multiplied {once}", f"{1 / count:.4g}": f": divided {once}"}
    if unit == "processes":
        causes["0.5"] += ", or rows that are gathered lose their gradient"
    if solved := factors(given, rows):
        lost, shown = solved
        if not lost:
            return Mismatch(f"{shown} x the gradient of the whole batch{causes.get(shown, '')}")
        text = f"the gradient of {len(lost)} of {len(rows)} rows is lost"
        text += f" (rows {lost[0]} to {lost[-1]})"
        return Mismatch(text if shown == "1" else f"{text}; that of others is {shown} x")
    own = [network.gradient(loss(embeddings[part], case.labels[part])) for part in parts]
    if solved := factors(given, torch.stack(own)):
        names = {f"{1 / count:.4g}": "mean", "1": "sum"}
        name = names.get(solved[1], f"sum ({solved[1]} x)")
        text = f"the {name} of the losses of {count} {unit}, not the loss of the whole batch"
        return Mismatch(text, kind=OWN_LOSS)
    batch = (embeddings, case.labels)
    for value in with_memory(loss, batch, (embeddings.detach(), case.labels)):
        if equal(given, network.gradient(value)):
            return Mismatch("rows of the batch are in its own memory, and ranked twice")
    length = float(given.norm() / whole.norm())
    cosine = float(torch.cosine_similarity(given, whole, dim=0))
    return Mismatch(f"{length:.4g} x the length of the whole batch's gradient, cosine {cosine:.4g}")


def factors(given: Tensor, terms: Tensor) -> tuple[list[int], str] | None:
    """Return the terms (N, P) that are lost in a sum ``given`` (P,), and the factors of others.

    Return None if it is no sum of them. Terms near 0 do not count.
    """
    found = torch.linalg.lstsq(terms.T, given.unsqueeze(1), driver="gelsd").solution[:, 0]
    if not equal(found @ terms, given):
        return None
    sizes = terms.norm(dim=1)
    counted = sizes > 1e-3 * sizes.max()
    lost = counted & (found.abs() < 1e-3)
    least, most = (f"{factor:.4g}" for factor in found[counted & ~lost].aminmax())
    return lost.nonzero()[:, 0].tolist(), least if least == most else f"{least} to {most}"
