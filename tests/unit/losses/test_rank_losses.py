"""Recall, NDCG and PNP equal their formulas: class sizes, references, memory, levels."""

from __future__ import annotations

from functools import partial

import losses_formulas as formulas
import pytest
import torch

from benchmark.core.errors import ConfigError, RunError
from benchmark.losses import create_loss
from benchmark.losses.rank_losses import mixed

torch.set_num_threads(1)

KS, SMOOTH = (1, 2, 4, 8, 16), formulas.smooth_rank
SUP = partial(formulas.sup_rank, tau=0.02, rho=30.0, delta=0.1, offset=1.44)
SUP_OPTIONS = {"tau": 0.02, "rho": 30.0, "delta": 0.1, "offset": 1.44}
# name, hyperparameters, formula of one query, whether the query is ranked among its references
CASES = [
    ("recall_at_k", {}, partial(formulas.recall_at_k, ks=KS, temperatures=[1] * 5), True),
    (
        "recall_at_k",
        {"ks": [1, 3], "temperatures": [0.5, 2.0], "tau": 0.1, "include_query": False},
        partial(formulas.recall_at_k, ks=(1, 3), temperatures=(0.5, 2.0), tau=0.1),
        False,
    ),
    (
        "smooth_recall",
        {"temperature": 2.0, "ks": [2, 5]},
        partial(formulas.recall, rank=SMOOTH, ks=(2, 5), temperatures=(2.0, 2.0)),
        True,
    ),
    (
        "sup_recall",
        SUP_OPTIONS,
        partial(formulas.recall, rank=SUP, ks=KS, temperatures=[1] * 5),
        True,
    ),
    ("smooth_ndcg", {"include_query": False}, partial(formulas.ndcg, rank=SMOOTH), False),
    ("smooth_ndcg", {}, partial(formulas.ndcg, rank=SMOOTH), True),
    ("sup_ndcg", SUP_OPTIONS, partial(formulas.ndcg, rank=SUP), True),
    ("approx_ndcg", {"alpha": 20.0}, partial(formulas.ndcg, rank=partial(SMOOTH, tau=0.05)), False),
    *(
        ("pnp", {"variant": name, "b": 3.0, "alpha": 2.0}, partial(formulas.pnp, penalty=f), True)
        for name, f in {
            "O": lambda r: r,
            "D_s": lambda r: torch.log(1 + r),
            "D_q": lambda r: 1 - (1 + r) ** -2.0,
            "I_u": lambda r: (1 + r) * torch.log(1 + r),
            "I_b": lambda r: (3 * r - torch.log(1 + 3 * r)) / 9,
        }.items()
    ),
]
IDS = [f"{name}-{extra}" for name, extra, _, _ in CASES]
GRADED = [case for case in CASES if "ndcg" in case[0]]


def rows(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(values, dim=1)


# classes of 1, 2, 4 and 6 images, mixed
LABELS = torch.tensor([0, 1, 2, 2, 1, 2, 3, 3, 2, 3, 3, 3, 3])
POOL_LABELS = torch.tensor([0, 2, 9, 3, 0, 3, 3, 8])
CATEGORY = torch.tensor([0, 0, 1, 1, 0, 0, 0, 0, 2, 3])  # of each class


def relevance(labels, others):
    """Levels (B, M) of labels (B,) or (B, L), finest first: columns equal from the coarsest on."""
    same = (labels.unsqueeze(1) == others).unsqueeze(2) if labels.ndim == 1 else None
    if same is None:
        same = labels.unsqueeze(1) == others.unsqueeze(0)
    return same.flip(2).long().cumprod(2).sum(2)


def expected(queries, labels, pool, pool_labels, own, formula, include_query):
    """Mean over the queries that have another image of their class among the references."""
    levels = relevance(labels, pool_labels)
    fine = 1 if labels.ndim == 1 else labels.shape[1]
    values = []
    for i in range(len(queries)):
        others = [j for j in range(len(pool)) if not (own and j == i)]
        if not (levels[i, others] == fine).any():
            continue
        keep = [i] * (own and include_query) + others
        query = 0 if own and include_query else None
        values.append(formula(queries[i] @ pool[keep].T, levels[i, keep].tolist(), query))
    return sum(values) / len(values)


def both(ours, theirs, embeddings, references=None):
    """Values and gradients of both, without the part of the gradients along the rows."""
    results = []
    for function in (ours, theirs):
        leaves = [
            part.clone().requires_grad_()
            for part in (embeddings, references)[: 1 + (references is not None)]
        ]
        value = function(*[torch.nn.functional.normalize(leaf, dim=1) for leaf in leaves])
        value.backward()
        results.append((value.detach(), [leaf.grad for leaf in leaves]))
    return results


def check(results):
    (value, gradients), (wanted, wanted_gradients) = results
    assert value.item() == pytest.approx(wanted.item(), rel=1e-10)
    for found, right in zip(gradients, wanted_gradients, strict=True):
        assert right.norm() > 1e-4
        assert torch.allclose(found, right, rtol=1e-8, atol=1e-10 * right.abs().max())


@pytest.mark.parametrize(("name", "extra", "formula", "include"), CASES, ids=IDS)
def test_separate_references(name, extra, formula, include):
    def theirs(e, r):
        return expected(e, LABELS, r, POOL_LABELS, False, formula, include)

    loss = create_loss(name, **extra)
    check(both(lambda e, r: loss(e, LABELS, r, POOL_LABELS), theirs, rows(13), rows(8, 1)))


@pytest.mark.parametrize(("name", "extra", "formula", "include"), CASES, ids=IDS)
def test_memory(name, extra, formula, include):
    memory, pool_labels = rows(8, 1), torch.cat([LABELS, POOL_LABELS])

    def theirs(e):
        return expected(e, LABELS, torch.cat([e, memory]), pool_labels, True, formula, include)

    loss = create_loss(name, **extra)
    check(both(lambda e: loss.with_memory(e, LABELS, memory, POOL_LABELS), theirs, rows(13)))


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize(("name", "extra", "formula", "include"), GRADED)
def test_levels_of_relevance(name, extra, formula, include, memory, levels):
    def nested(labels):
        return torch.stack([labels, CATEGORY[labels], CATEGORY[labels] // 2][:levels], dim=1)

    labels, others, pool = nested(LABELS), nested(POOL_LABELS), rows(8, 1)
    loss = create_loss(name, **extra)
    if memory:
        both_labels = torch.cat([labels, others])
        results = both(
            lambda e: loss.with_memory(e, labels, pool, others),
            lambda e: expected(
                e, labels, torch.cat([e, pool]), both_labels, True, formula, include
            ),
            rows(13),
        )
    else:
        results = both(
            lambda e, r: loss(e, labels, r, others),
            lambda e, r: expected(e, labels, r, others, False, formula, include),
            rows(13),
            pool,
        )
    check(results)


def test_one_level_is_the_plain_loss_and_equal_numbers_in_other_categories_are_other_classes():
    loss, embeddings = create_loss("sup_ndcg"), rows(13)
    plain = loss(embeddings, LABELS).item()
    assert loss(embeddings, LABELS.unsqueeze(1)).item() == plain
    # classes numbered from 0 in each category
    category = CATEGORY[LABELS]
    number = torch.tensor([0, 1, 0, 2])[LABELS]
    unique = loss(embeddings, torch.stack([LABELS, category], dim=1)).item()
    assert loss(embeddings, torch.stack([number, category], dim=1)).item() == unique != plain


def test_losses_of_one_level_refuse_labels_of_several():
    labels = torch.stack([LABELS, LABELS], dim=1)
    with pytest.raises(RunError, match=r"integer labels \(B,\)"):
        create_loss("sup_recall")(rows(13), labels)


def test_simix_is_the_loss_of_the_batch_with_its_virtual_images():
    embeddings, plain = rows(13), create_loss("recall_at_k")
    extended, labels = mixed(embeddings, LABELS, torch.Generator().manual_seed(5))
    # classes of 1, 2, 4 and 6 images have 0, 1, 6 and 15 pairs
    assert len(labels) == 13 + 22 and torch.equal(extended[:13], embeddings)
    for virtual, label in zip(extended[13:], labels[13:], strict=True):
        ends = embeddings[label == LABELS]
        chords = torch.pdist(ends)
        between = torch.cdist(virtual[None], ends)[0]
        sums = (between.unsqueeze(0) + between.unsqueeze(1))[
            tuple(torch.triu_indices(len(ends), len(ends), 1))
        ]
        assert (sums - chords).abs().min() < 1e-12, "on the line between two of the class"
    results = both(
        lambda e: create_loss("recall_at_k", simix=True)(
            e, LABELS, generator=torch.Generator().manual_seed(5)
        ),
        lambda e: plain(*mixed(e, LABELS, torch.Generator().manual_seed(5))),
        embeddings,
    )
    check(results)


@pytest.mark.parametrize("name", ["recall_at_k", "smooth_recall", "sup_recall"])
def test_cutoffs_are_checked(name):
    for wrong in ([], [4, 0], [1.5]):
        with pytest.raises(ConfigError, match="ks"):
            create_loss(name, ks=wrong)
    with pytest.raises(ConfigError, match="one for each of ks"):
        create_loss("recall_at_k", ks=[1, 2, 4], temperatures=[1.0, 2.0])
