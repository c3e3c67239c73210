"""The ranking losses as their papers write them: dense, one query at a time, by autograd.

Each function in ``PER_QUERY`` returns the loss of one query. It takes the scores (R,) of the ranked
items, and which of these items are positives, boolean (R,). ``queries`` is the number of queries in
the mean; only BlackBoxAP's gradient depends on it. The functions are written to be read, and
nothing here is fast. ``Reference`` makes the loss of a batch of such a function. ``Expected`` is
the reference's answer to one batch, and says how far another answer may be from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.losses import create_loss


def _gaps(scores: Tensor, positive: Tensor) -> Tensor:
    """Return (P, R): at [k, j] by how much item j scores above positive k."""
    return scores - scores[positive].unsqueeze(1)


def _others(positive: Tensor) -> Tensor:
    """Return boolean (P, R): at [k, j] whether item j is another item than positive k."""
    return positive.nonzero() != torch.arange(len(positive))


def _smooth(scores: Tensor, positive: Tensor, config: Any) -> tuple[Tensor, Tensor]:
    """Return the ranks (P,) of positives among positives and among all items, by a sigmoid."""
    tau = config.tau if hasattr(config, "tau") else 1.0 / config.alpha
    above = torch.sigmoid(_gaps(scores, positive) / tau) * _others(positive)
    return 1.0 + above[:, positive].sum(1), 1.0 + above.sum(1)


def _bounded(scores: Tensor, positive: Tensor, config: Any) -> tuple[Tensor, Tensor]:
    """Return the same ranks: exact among positives, bounded from above among negatives."""
    gaps = _gaps(scores, positive)
    among = 1.0 + ((gaps >= 0) * _others(positive))[:, positive].sum(1)
    gaps = gaps[:, ~positive]
    offset = config.offset
    if offset is None:
        offset = 1.0 / (1.0 + math.exp(-config.delta / config.tau)) + config.start
    near = torch.sigmoid(gaps / config.tau) + config.start * (gaps >= 0)
    far = config.rho * (gaps - config.delta) + offset
    return among, among + torch.where(gaps > config.delta, far, near).sum(1)


def _precision(among: Tensor, rank: Tensor, config: Any) -> Tensor:
    return (among / rank).mean()


def _recall(among: Tensor, rank: Tensor, config: Any) -> Tensor:
    """Return the mean over k of the soft number of positives among the first k / min(k, P)."""
    t = config.temperature
    most = len(rank)
    recalls = [torch.sigmoid((k - rank) / t).sum() / min(k, most) for k in config.ks]
    return torch.stack(recalls).mean()


def _gain(among: Tensor, rank: Tensor, config: Any) -> Tensor:
    """Return the sum of 1 / log2(1 + rank) over its largest value."""
    best = torch.arange(1, len(rank) + 1, dtype=rank.dtype)
    return (1.0 / torch.log2(1.0 + rank)).sum() / (1.0 / torch.log2(1.0 + best)).sum()


def _one_minus(measure: Callable, ranks: Callable) -> Callable:
    """Return the loss of one query that is 1 - a measure of the ranks of its positives."""

    def loss(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
        return 1.0 - measure(*ranks(scores, positive, config), config)

    return loss


smooth_ap = _one_minus(_precision, _smooth)  # Smooth-AP, Eq. 5 to 7
sup_ap = _one_minus(_precision, _bounded)  # ROADMAP, Eq. 3 to 5


def pnp(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return the mean over positives of a penalty of the negatives before each (PNP, AAAI 2022)."""
    before = torch.sigmoid(_gaps(scores, positive) / config.tau)[:, ~positive].sum(1)
    b = config.b
    penalties = {
        "O": before,
        "D_s": torch.log(1.0 + before),
        "D_q": 1.0 - 1.0 / (1.0 + before) ** config.alpha,
        "I_u": (1.0 + before) * torch.log(1.0 + before),
        "I_b": (b * before - torch.log(1.0 + b * before)) / b**2,
    }
    return penalties[config.variant].mean()


def recall_at_k(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return 1 - the mean over k of a soft Recall@k (Patel et al., CVPR 2022, Eq. 6 to 8).

    If the query is an item itself, it is ranked but is not a positive.
    """
    _, rank = _smooth(scores, positive, config)
    temperatures = config.temperatures
    if len(temperatures) == 1:
        temperatures = temperatures * len(config.ks)
    recalls = []
    for k, temperature in zip(config.ks, temperatures, strict=True):
        hits = torch.sigmoid((k - rank) / temperature).sum()
        recalls.append(hits.clamp(max=k) / min(k, len(rank)))
    return 1.0 - torch.stack(recalls).mean()


def fast_ap(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return 1 - AP of a histogram of distances^2 with ``bins`` intervals (FastAP, Eq. 14)."""
    return _histogram_ap(scores, positive, config.bins + 1, tie_aware=False)


def softbin_ap(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return 1 - AP of a histogram of scores with ``bins`` centers (listwise loss, Eq. 7 to 13)."""
    aware = config.ties == "aware"
    return _histogram_ap(scores, positive, config.bins, tie_aware=aware, lowest=config.lowest)


def blackbox_ap(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return the exact 1 - AP; its gradient is the difference quotient of the ranker.

    Rolinek et al., CVPR 2020. A random margin is drawn from torch's own generator.
    """
    away = torch.where(positive, -0.5, 0.5).to(scores.dtype) * config.margin
    if not config.fixed_margin:
        away = away * torch.randn_like(scores).abs()
    moved = (scores + away).detach()
    rank = _exact_ranks(moved) / len(scores)
    among = _exact_ranks(moved[positive]) / len(scores)
    loss = 1.0 - (among / rank[positive]).mean()
    slope = torch.zeros_like(moved)  # of the mean loss with respect to the ranks
    slope[positive] = among / rank[positive].square() / (len(among) * queries)
    changed = _exact_ranks(moved + config.lambda_val * slope) / len(scores)
    quotient = (changed - rank) / config.lambda_val
    # the second term is 0, and its derivative is the quotient
    return loss + ((scores - scores.detach()) * quotient).sum() * queries


def _exact_ranks(scores: Tensor) -> Tensor:
    """Return the rank of each item from 1; tied items share the worst of their ranks."""
    return (scores >= scores.unsqueeze(1)).sum(1).to(scores.dtype)


def _histogram_ap(
    scores: Tensor, positive: Tensor, centers: int, tie_aware: bool, lowest: float = -1.0
) -> Tensor:
    """Return 1 - AP of items shared linearly between the nearest of even centers on [lowest, 1]."""
    width = (1.0 - lowest) / (centers - 1)
    center = torch.linspace(1.0, lowest, centers, dtype=scores.dtype).unsqueeze(1)
    share = (1.0 - (scores.clamp(lowest, 1.0) - center).abs() / width).clamp(min=0.0)
    of_all = share.sum(1)
    of_positives = share[:, positive].sum(1)
    seen = of_all.cumsum(0)
    seen_positives = of_positives.cumsum(0)
    if tie_aware:  # the precision in the middle of each bin instead of at its end
        seen = 1.0 + 2.0 * seen - of_all
        seen_positives = 1.0 + 2.0 * seen_positives - of_positives
    precision = seen_positives / torch.where(seen > 0, seen, 1.0)
    return 1.0 - (of_positives * precision).sum() / positive.sum()


PER_QUERY: dict[str, Callable] = {
    "pnp": pnp,
    "recall_at_k": recall_at_k,
    "fast_ap": fast_ap,
    "softbin_ap": softbin_ap,
    "blackbox_ap": blackbox_ap,
    "smooth_ap": smooth_ap,
    "sup_ap": sup_ap,
    "smooth_recall": _one_minus(_recall, _smooth),  # HAPPIER's framework, TPAMI 2025
    "sup_recall": _one_minus(_recall, _bounded),
    "smooth_ndcg": _one_minus(_gain, _smooth),  # of positives that are equally relevant
    "sup_ndcg": _one_minus(_gain, _bounded),
    "approx_ndcg": _one_minus(_gain, _smooth),  # Qin et al., 2010, Eq. 13
}
NAMES = sorted([*PER_QUERY, "roadmap"])
BFLOAT16 = torch.bfloat16
FLOAT32 = torch.float32
FLOAT64 = torch.float64
# What rounding may change: the reference is evaluated again with scores disturbed by the first
# number, and the change that this makes, times the second number, is allowed. A value may differ by
# the third number as well, and a gradient by the fourth number times its largest entry.
PRECISION = {
    BFLOAT16: (4e-3, 4.0, 0.02, math.inf),
    FLOAT32: (3e-7, 10.0, 2e-6, 2e-5),
    FLOAT64: (1e-15, 10.0, 1e-9, 1e-8),
}
SEEDS = range(1, 5)
DRAWS = 50  # of a random loss, whose means are compared
STANDARD_ERRORS = 6.0


@dataclass(frozen=True, eq=False)
class Case:
    """A batch: embeddings (B, D) of length 1 and labels (B,), and references (M, D) if any.

    With ``memory`` the batch queries itself and the references, which are of earlier batches.
    Embeddings are float64 numbers that float32 holds exactly. ``exact``: float32 holds their scores
    exactly, too, and ties are meant. Otherwise no two scores of a query are near each other.
    """

    name: str
    embeddings: Tensor
    labels: Tensor
    references: Tensor | None = None
    reference_labels: Tensor | None = None
    exact: bool = False
    memory: bool = False

    def subset(self, keep: Iterable[int] | Tensor) -> Case:
        """Return the batch with only these rows."""
        index = torch.as_tensor(keep, dtype=torch.long)
        return replace(self, embeddings=self.embeddings[index], labels=self.labels[index])

    @property
    def has_positive(self) -> bool:
        """Whether a query has a positive besides itself."""
        if self.reference_labels is not None:
            return bool(torch.isin(self.labels, self.reference_labels).any())
        return len(torch.unique(self.labels)) < len(self.labels)


@dataclass(frozen=True)
class Answer:
    """A value and its gradient (B, D) with respect to embeddings before they are normalised.

    Such a gradient has no part along an embedding, which no normalising network sees.
    """

    value: float
    gradient: Tensor | None


@dataclass(frozen=True)
class Mismatch:
    """What is wrong in words, how many times the allowed difference it is, and its kind."""

    text: str
    times: float = math.inf
    kind: str = ""


@dataclass(frozen=True, eq=False)
class Reference:
    """A registered loss with its options, written as a dense formula."""

    name: str
    options: Mapping[str, Any]
    config: Any

    def drawn(self, dtype: torch.dtype) -> bool:
        """Whether an answer is the mean of many draws; under autocast one draw is enough."""
        random = getattr(self.config, "margin", 0.0) and not self.config.fixed_margin
        return bool(random) and dtype != BFLOAT16

    def answer(
        self, case: Case, noise: float = 0.0, seed: int = 0, *, gradient: bool = True
    ) -> Answer:
        """Return the answer to a batch whose scores are disturbed by ``noise`` x normal numbers.

        The value is NaN if no query has a positive. The gradient takes most of the time.
        """
        free = case.embeddings.clone().requires_grad_(gradient)
        queries = pool = normalize(free, dim=1)
        pool_labels = case.labels
        if case.references is not None and case.reference_labels is not None:
            pool = normalize(case.references, dim=1)
            pool_labels = case.reference_labels
            if case.memory:
                pool = torch.cat([queries, pool])
                pool_labels = torch.cat([case.labels, pool_labels])
        scores = queries @ pool.T
        normal = torch.randn(scores.shape, generator=torch.Generator().manual_seed(seed))
        scores = scores + noise * normal.double()
        positives = case.labels.unsqueeze(1) == pool_labels
        ranked = torch.ones_like(positives)
        if case.references is None or case.memory:
            ranked.fill_diagonal_(False)
        formula = _roadmap if self.name == "roadmap" else partial(_mean, PER_QUERY[self.name])
        value = formula(self.config, scores, positives, ranked)
        if not gradient or not value.isfinite():
            return Answer(float(value), None)
        return Answer(value.item(), *torch.autograd.grad(value + 0.0 * free.sum(), free))


@dataclass(frozen=True, eq=False)
class Expected:
    """The reference's answer to a batch, and how far another answer in ``dtype`` may be from it."""

    reference: Reference
    case: Case
    dtype: torch.dtype

    @cached_property
    def answer(self) -> Answer:
        """The answer, the mean of many draws where the loss is random."""
        random = self.reference.drawn(self.dtype)
        return mean(self.draws) if random else self.reference.answer(self.case)

    @cached_property
    def draws(self) -> list[Answer]:
        """Many answers of a random loss."""
        return draws(partial(self.reference.answer, self.case))

    def differing(
        self, part: str, given: Any, wanted: Any = None, times: float = 1.0
    ) -> Mismatch | None:
        """Return how far a "value" or "gradient" is from this answer, or from ``wanted``.

        Return None if the difference is at most ``times`` the allowed difference, or if no gradient
        is expected.
        """
        wanted = getattr(self.answer, part) if wanted is None else wanted
        if wanted is None:
            return None
        value = 0.0 if given is None else given
        off = torch.as_tensor(value - wanted, dtype=FLOAT64).abs()
        gradient = self.answer.gradient
        *_, floor, of_gradient = PRECISION[self.dtype]
        if part == "gradient" and gradient is not None:
            floor = of_gradient * max(0.3, float(gradient.abs().max()))
        elif part == "value":
            floor *= max(1.0, abs(wanted))
        largest = float(off.max())  # without a look at the noise first
        if largest <= times * floor or largest <= (limit := times * (floor + noise(self, part))):
            return None
        size = "finite" if math.isfinite(largest) else str(largest)
        kind = f"{part} {size}"
        if given is None:
            text = "no gradient reaches the embeddings"
            kind = "no gradient"
        elif part == "value":
            text = f"value {given:.7g}, expected {wanted:.7g} (+-{limit:.1g})"
        else:
            row, column = divmod(int(off.nan_to_num(torch.inf).argmax()), wanted.shape[1])
            text = (
                f"gradient of row {row}, column {column} is {given[row, column]:.7g}, expected "
                f"{wanted[row, column]:.7g} (+-{limit:.1g})"
            )
            if float(wanted.abs().max()) > limit:
                share = float((given * wanted).sum() / wanted.square().sum())
                text += f"; along the expected gradient it is {share:.4g} of it"
        return Mismatch(text, largest / limit, kind)


expected = cache(Expected)  # one for each reference and batch, whichever candidate is held to it


@cache
def noise(right: Expected, part: str) -> float:
    """Return what rounding may change of the value or the gradient."""
    drawn = right.reference.drawn(right.dtype)
    of_gradient = part == "gradient"
    exact = right.case.exact and not of_gradient  # scores that are not rounded
    if not drawn and (exact or not math.isfinite(right.answer.value)):
        return 0.0
    disturbance, margin, *_ = PRECISION[right.dtype]
    answer = partial(right.reference.answer, right.case, disturbance, gradient=of_gradient)
    answers = right.draws if drawn else [answer(seed=seed) for seed in SEEDS]
    values = torch.stack([torch.as_tensor(getattr(a, part), dtype=FLOAT64) for a in answers])
    if drawn:
        return STANDARD_ERRORS * (2.0 / DRAWS) ** 0.5 * float(values.std(0).max())
    return margin * float((values - getattr(right.answer, part)).abs().max())


def draws(draw: Callable[[], Answer]) -> list[Answer]:
    """Return many answers of a random loss."""
    torch.default_generator.manual_seed(0)
    return [draw() for _ in range(DRAWS)]


def mean(answers: list[Answer]) -> Answer:
    """Return the mean of answers, without a gradient if one has none."""
    gradients = [answer.gradient for answer in answers if answer.gradient is not None]
    gradient = None
    if len(gradients) == len(answers):
        gradient = torch.stack(gradients).mean(0)
    return Answer(fmean(answer.value for answer in answers), gradient)


def reference(name: str, options: Mapping[str, Any]) -> Reference:
    """Return the reference of the loss registered as ``name``, with its hyperparameters.

    Raises ConfigError for a name without a formula, or naming every wrong hyperparameter.
    """
    if name not in NAMES:
        raise ConfigError("--as", [unknown_name("reference", name, NAMES)])
    config = create_loss(name, **options).config  # it may refuse more than its Config says
    if getattr(config, "simix", False):
        raise ConfigError("--option", ["simix  makes images of its own (allowed here: false)"])
    return Reference(name, options, config)


def _mean(
    formula: Callable, config: Any, scores: Tensor, positives: Tensor, ranked: Tensor
) -> Tensor:
    """Return the mean of a formula over the queries that have a positive besides themselves.

    Takes scores (Q, R), which references are positives (Q, R), which are ranked at all (Q, R).
    """
    queries = (positives & ranked).any(1).nonzero().flatten().tolist()
    if not queries:
        return scores.sum() * torch.nan
    if getattr(config, "include_query", False):
        if formula is recall_at_k:  # its query is ranked and no positive
            positives = positives & ranked
        ranked = torch.ones_like(ranked)
    losses = []
    for query in queries:
        items = ranked[query]
        shown = scores[query, items], positives[query, items]
        losses.append(formula(*shown, config, len(queries)))
    values = torch.stack(losses)
    if getattr(config, "query_weights", "uniform") == "uniform":
        return values.mean()
    # queries of one class have the same row of positives
    group = torch.unique(positives[queries], dim=0, return_inverse=True)[1]
    return torch.stack([values[group == number].mean() for number in group.unique()]).mean()


def _roadmap(config: Any, scores: Tensor, positives: Tensor, ranked: Tensor) -> Tensor:
    """Return (1 - lambda) SupAP + lambda calibration (ROADMAP, Eq. 2).

    The calibration (Eq. 7) is a mean by query, or over pairs that are not 0.
    """
    of_sup_ap, of_calibration = config.weights or [1.0 - config.lambda_, config.lambda_]
    near = positives & ranked
    far = ~positives
    lack = (config.alpha - scores).clamp(min=0.0) * near
    excess = (scores - config.beta).clamp(min=0.0) * far
    if config.reduction == "nonzero":
        means = [part.sum() / max(1, int((part > 0).sum())) for part in (lack, excess)]
        calibration = means[0] + means[1]
    else:
        per_query = lack.sum(1) / near.sum(1).clamp(min=1)
        per_query = per_query + excess.sum(1) / far.sum(1).clamp(min=1)
        calibration = per_query[near.any(1)].mean()
    ranking = _mean(sup_ap, config, scores, positives, ranked)
    return of_sup_ap * ranking + of_calibration * calibration
