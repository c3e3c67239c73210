"""Levels of relevance, virtual images and cutoffs of the losses of ranks."""

from __future__ import annotations

import pytest
import torch

from benchmark.core.errors import ConfigError, RunError
from benchmark.losses import create_loss
from benchmark.losses.rank_losses import mixed

torch.set_num_threads(1)

SUP_OPTIONS = {"tau": 0.02, "rho": 30.0, "delta": 0.1, "offset": 1.44}
GRADED = [
    ("smooth_ndcg", {"include_query": False}),
    ("smooth_ndcg", {}),
    ("sup_ndcg", SUP_OPTIONS),
    ("approx_ndcg", {"alpha": 20.0}),
]


def ranks(gaps, levels, config):
    """Ranks (R,) of items at levels (R,), whose item j scores gaps[p, j] above item p."""
    tau = config.tau if hasattr(config, "tau") else 1 / config.alpha
    above = torch.sigmoid(gaps / tau)
    if hasattr(config, "rho"):  # exact among those as relevant, a bound among the others
        near = above + config.start * (gaps >= 0)
        far = config.rho * (gaps - config.delta) + config.offset
        bound = torch.where(gaps > config.delta, far, near)
        above = torch.where(levels >= levels.unsqueeze(1), (gaps >= 0).double(), bound)
    others = 1 - torch.eye(len(levels))
    return 1 + (above * others).sum(1)


def one_minus_ndcg(scores, levels, config):
    gaps = scores - scores.unsqueeze(1)
    gains = 2.0**levels - 1
    best_gains = gains.sort(descending=True).values
    best_ranks = torch.arange(len(levels), dtype=scores.dtype) + 1
    found = gains / torch.log2(1 + ranks(gaps, levels, config))
    best = best_gains / torch.log2(1 + best_ranks)
    return 1 - found.sum() / best.sum()


def rows(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(values, dim=1)


# classes of 1, 2, 4 and 6 images, mixed
LABELS = torch.tensor([0, 1, 2, 2, 1, 2, 3, 3, 2, 3, 3, 3, 3])
POOL_LABELS = torch.tensor([0, 2, 9, 3, 0, 3, 3, 8])
CATEGORY = torch.tensor([0, 0, 1, 1, 0, 0, 0, 0, 2, 3])  # of each class


def relevance(labels, others):
    """Levels (B, M) of labels (B, L), finest first: columns equal from the coarsest on."""
    same = labels.unsqueeze(1) == others.unsqueeze(0)
    return same.flip(2).long().cumprod(2).sum(2)


def expected(queries, labels, pool, pool_labels, own, config):
    """Mean over the queries that have another image of their class among the references."""
    levels = relevance(labels, pool_labels)
    values = []
    places = torch.arange(len(pool))
    for i, query in enumerate(queries):
        kept = places[places != i] if own else places
        if not (levels[i, kept] == labels.shape[1]).any():
            continue
        if own and config.include_query:
            kept = places
        values.append(one_minus_ndcg(pool[kept] @ query, levels[i, kept], config))
    return torch.stack(values).mean()


def both(ours, theirs, *sets):
    """Values and gradients of both, without the part of the gradients along the rows."""
    results = []
    for function in (ours, theirs):
        leaves = [rows.clone().requires_grad_() for rows in sets]
        unit_rows = [torch.nn.functional.normalize(leaf, dim=1) for leaf in leaves]
        value = function(*unit_rows)
        value.backward()
        results.append((value.detach(), [leaf.grad for leaf in leaves]))
    return results


def check(results):
    (value, gradients), (wanted, wanted_gradients) = results
    assert value.item() == pytest.approx(wanted.item(), rel=1e-10)
    for found, right in zip(gradients, wanted_gradients, strict=True):
        assert right.norm() > 1e-4
        assert torch.allclose(found, right, rtol=1e-8, atol=1e-10 * right.abs().max())


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize(("name", "extra"), GRADED, ids=str)
def test_levels_of_relevance(name, extra, memory, levels):
    def nested(labels):
        category = CATEGORY[labels]
        return torch.stack([labels, category, category // 2][:levels], dim=1)

    labels = nested(LABELS)
    others = nested(POOL_LABELS)
    pool = rows(8, 1)
    loss = create_loss(name, **extra)
    if memory:
        every_label = torch.cat([labels, others])

        def of_formula(batch):
            return expected(batch, labels, torch.cat([batch, pool]), every_label, True, loss.config)

        results = both(lambda e: loss.with_memory(e, labels, pool, others), of_formula, rows(13))
    else:

        def of_formula(batch, pool):
            return expected(batch, labels, pool, others, False, loss.config)

        results = both(lambda e, r: loss(e, labels, r, others), of_formula, rows(13), pool)
    check(results)


def test_one_level_is_the_plain_loss_and_equal_numbers_in_other_categories_are_other_classes():
    loss = create_loss("sup_ndcg")
    embeddings = rows(13)
    plain = loss(embeddings, LABELS).item()
    one_level = loss(embeddings, LABELS.unsqueeze(1)).item()
    assert one_level == plain
    # classes numbered from 0 in each category
    category = CATEGORY[LABELS]
    number = torch.tensor([0, 1, 0, 2])[LABELS]
    unique = loss(embeddings, torch.stack([LABELS, category], dim=1)).item()
    numbered = loss(embeddings, torch.stack([number, category], dim=1)).item()
    assert numbered == unique
    assert unique != plain


def test_losses_of_one_level_refuse_labels_of_several():
    labels = torch.stack([LABELS, LABELS], dim=1)
    with pytest.raises(RunError, match=r"integer labels \(B,\)"):
        create_loss("sup_recall")(rows(13), labels)


def test_simix_is_the_loss_of_the_batch_with_its_virtual_images():
    embeddings = rows(13)
    extended, labels = mixed(embeddings, LABELS, torch.Generator().manual_seed(5))
    # classes of 1, 2, 4 and 6 images have 0, 1, 6 and 15 pairs
    assert len(labels) == 13 + 22
    assert torch.equal(extended[:13], embeddings)
    for virtual, label in zip(extended[13:], labels[13:], strict=True):
        ends = embeddings[label == LABELS]
        to_ends = torch.cdist(virtual[None], ends)[0]
        detours = torch.combinations(to_ends).sum(1) - torch.pdist(ends)
        assert detours.abs().min() < 1e-12, "on the line between two of the class"
    plain = create_loss("recall_at_k")
    with_virtual = create_loss("recall_at_k", simix=True)
    results = both(
        lambda e: with_virtual(e, LABELS, generator=torch.Generator().manual_seed(5)),
        lambda e: plain(*mixed(e, LABELS, torch.Generator().manual_seed(5))),
        embeddings,
    )
    check(results)


@pytest.mark.parametrize("ks", [[], [4, 0], [1.5]])
@pytest.mark.parametrize("name", ["recall_at_k", "smooth_recall", "sup_recall"])
def test_cutoffs_are_checked(name, ks):
    with pytest.raises(ConfigError, match="ks"):
        create_loss(name, ks=ks)


def test_there_is_a_temperature_for_each_cutoff():
    with pytest.raises(ConfigError, match="one for each of ks"):
        create_loss("recall_at_k", ks=[1, 2, 4], temperatures=[1.0, 2.0])
