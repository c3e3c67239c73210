"""What every registered loss must do, whoever wrote it."""

from __future__ import annotations

import dataclasses
import functools
import math

import pytest
import torch

from benchmark.core.errors import BenchmarkError, RunError
from benchmark.core.options import schema_of
from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import Loss, RankingLoss, ScoreLoss
from benchmark.losses.conformance.formulas import reference
from benchmark.losses.conformance.suite import lattice, mixed

torch.set_num_threads(1)
DIM = 8
CLASSES = 6
ENTRIES = {entry.name: entry for entry in LOSSES if entry.facts["kind"] not in ("none", "triplets")}
FACTS = {name: entry.facts for name, entry in ENTRIES.items()}
EVERY = sorted(ENTRIES)
RANKING = [name for name in EVERY if FACTS[name]["kind"] == "ranking"]
REFERENCED = [name for name in EVERY if FACTS[name]["accepts_references"]]
STOCHASTIC = [name for name in EVERY if FACTS[name]["stochastic"]]
# means over queries; other losses of the kind add terms to one
MEANS = [name for name in EVERY if issubclass(ENTRIES[name].target, RankingLoss)]
# Their ranks are soft among positives too, or the worst of a tie: a perfect ranking costs a little.
SOFT_AMONG_POSITIVES = (
    "approx_ndcg",
    "recall_at_k",
    "smooth_ndcg",
    "smooth_recall",
    "sup_ndcg",
    "sup_recall",
)
WIDE = {"tau": 0.1, "rho": 3.0, "delta": 0.2}
# Losses of scores with options; the formulas of benchmark.losses.conformance have them all.
OPTIONS = [
    ("smooth_ap", {}),
    ("smooth_ap", {"tau": 0.1}),
    ("smooth_ap", {"tau": 0.1, "include_query": False}),
    ("sup_ap", {}),
    ("sup_ap", {"start": 0.0}),
    ("sup_ap", {"rho": 7.0, "include_query": False}),
    ("sup_ap", WIDE),
    ("sup_ap", {**WIDE, "offset": 1.44}),
    ("fast_ap", {}),
    ("fast_ap", {"bins": 3}),
    ("softbin_ap", {}),
    ("softbin_ap", {"bins": 5, "include_query": False}),
    ("softbin_ap", {"query_weights": "class"}),
    ("softbin_ap", {"ties": "aware"}),
    ("softbin_ap", {"query_weights": "class", "ties": "aware", "include_query": False}),
    ("softbin_ap", {"bins": 25, "lowest": 0.0}),
    ("softbin_ap", {"query_weights": "class", "ties": "aware", "bins": 7, "lowest": -0.25}),
    ("roadmap", {"lambda_": 0.2}),
    ("roadmap", {**WIDE, "weights": [1.0, 0.3]}),
    ("roadmap", {"weights": [0.0, 1.0], "beta": -0.1, "reduction": "nonzero"}),
    ("recall_at_k", {"tau": 0.1}),
    ("recall_at_k", {"ks": [1, 3], "temperatures": [0.5, 2.0], "include_query": False}),
    ("smooth_recall", {"temperature": 2.0, "ks": [2, 5]}),
    ("sup_recall", {**WIDE, "offset": 1.44}),
    ("smooth_ndcg", {"tau": 0.1}),
    ("smooth_ndcg", {"include_query": False}),
    ("sup_ndcg", WIDE),
    ("approx_ndcg", {"alpha": 20.0}),
    ("pnp", {"variant": "D_s", "b": 3.0}),
    ("pnp", {"variant": "D_q", "b": 3.0}),
    ("pnp", {"variant": "I_u", "b": 3.0}),
    ("pnp", {"variant": "I_b", "b": 3.0}),
    ("pnp", {"variant": "O", "b": 3.0}),
]
# Its gradient is no derivative.
BLACKBOX = [
    ("blackbox_ap", {"margin": 0.0, "lambda_val": 0.5}),
    ("blackbox_ap", {"margin": 0.0, "lambda_val": 50.0, "include_query": False}),
    ("blackbox_ap", {"margin": 0.25, "fixed_margin": True}),
]
UNEQUAL = mixed("classes of 7, 5, 4, 2 and 1", [7, 5, 4, 2, 1], 8, 3)
HALVES = dataclasses.replace(
    UNEQUAL.subset(range(9)),
    references=UNEQUAL.embeddings[9:],
    reference_labels=UNEQUAL.labels[9:],
)


def options_of(name):
    return [item.name for item in dataclasses.fields(ENTRIES[name].target.Config)]


def needs_positives(name):
    loss = ENTRIES[name].target
    return issubclass(loss, ScoreLoss) or getattr(loss, "needs_positives", False)


def make(name, **hyperparameters):
    return create_loss(name, embedding_dim=DIM, num_classes=CLASSES, seed=7, **hyperparameters)


def rng():
    return torch.Generator().manual_seed(11)


def batch(sizes=(4, 4, 4, 4, 4, 4), seed=0, dtype=torch.float32, spread=1.0):
    """Unit rows around class centers, so that rankings are neither perfect nor random."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(len(sizes), DIM, generator=generator, dtype=torch.float64)
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    noise = torch.randn(len(labels), DIM, generator=generator, dtype=torch.float64)
    rows = torch.nn.functional.normalize(centers[labels] + spread * noise, dim=1)
    return rows.to(dtype), labels


def value_and_gradient(loss, embeddings, labels, **others):
    embeddings = embeddings.detach().clone().requires_grad_()
    value = loss(embeddings, labels, generator=rng(), **others)
    value.backward()
    return value.detach(), embeddings.grad


@pytest.mark.parametrize("name", EVERY)
def test_entry_declares_its_facts_and_a_valid_config(name):
    entry = ENTRIES[name]
    assert set(entry.facts) == {"paper", "kind", "stochastic", "accepts_references"}
    assert entry.facts["kind"] in ("ranking", "pair", "proxy")
    assert entry.display
    assert entry.facts["paper"]
    assert issubclass(entry.target, Loss)
    assert dataclasses.is_dataclass(entry.target.Config)
    options = schema_of(entry.target.Config)["properties"]
    assert all(option.get("description") for option in options.values())


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((4, 4, 4, 4, 4, 4), id="balanced"),
        pytest.param((2, 3, 5, 7, 1, 4), id="unequal"),
        pytest.param((24,), id="one_class"),
    ],
)
def test_value_is_finite_scalar_and_differentiable(name, sizes):
    embeddings, labels = batch(sizes)
    value, gradient = value_and_gradient(make(name), embeddings, labels)
    assert value.shape == ()
    assert value.isfinite()
    assert gradient.shape == embeddings.shape
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", EVERY)
def test_imperfect_batch_has_gradient(name):
    _, gradient = value_and_gradient(make(name), *batch())
    assert gradient.norm() > 1e-4


@pytest.mark.parametrize("name", RANKING)
def test_perfect_ranking_is_lowest_and_costs_nothing(name):
    labels = torch.arange(CLASSES).repeat_interleave(4)
    perfect = torch.eye(DIM)[labels]
    if name in SOFT_AMONG_POSITIVES:  # a tie would cost them more than its random order
        noise = torch.randn(perfect.shape, generator=rng())
        perfect = torch.nn.functional.normalize(perfect + 0.2 * noise, dim=1)
    loss = make(name)
    lowest = loss(perfect, labels, generator=rng()).item()
    if name not in SOFT_AMONG_POSITIVES:
        assert lowest == pytest.approx(0.0, abs=1e-5)
    for seed in range(5):
        imperfect = loss(*batch(seed=seed), generator=rng())
        assert imperfect.item() > lowest


@pytest.mark.parametrize("name", MEANS)
def test_collapsed_embeddings_do_not_count_as_ranked(name):
    embeddings, labels = batch()
    collapsed = embeddings[:1].expand(len(labels), -1)
    value = make(name)(collapsed, labels, generator=rng())
    assert value.item() > 0.25


# n_pairs takes the first two images of each class
@pytest.mark.parametrize("name", [n for n in EVERY if n not in (*STOCHASTIC, "n_pairs")])
def test_order_of_the_batch_changes_nothing(name):
    embeddings, labels = batch((2, 3, 5, 7, 1, 4), dtype=torch.float64)
    order = torch.randperm(len(labels), generator=rng())
    value, gradient = value_and_gradient(make(name), embeddings, labels)
    shuffled, shuffled_gradient = value_and_gradient(make(name), embeddings[order], labels[order])
    assert value.item() == pytest.approx(shuffled.item(), rel=1e-9)
    assert torch.allclose(gradient[order], shuffled_gradient, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("name", EVERY)
def test_only_stochastic_losses_depend_on_the_generator(name):
    embeddings, labels = batch()
    values = []
    for seed in (1, 1, 2):
        generator = torch.Generator().manual_seed(seed)
        value = make(name)(embeddings, labels, generator=generator)
        values.append(value.item())
    first, again, other = values
    assert first == again
    assert (first != other) == (name in STOCHASTIC)


@pytest.mark.parametrize("name", EVERY)
def test_global_generator_is_neither_used_nor_moved(name):
    embeddings, labels = batch()
    values = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        value = make(name)(embeddings, labels, generator=rng())
        values.append(value.item())
        assert torch.equal(before, torch.get_rng_state())
    first, second = values
    assert first == second


@pytest.mark.parametrize("name", REFERENCED)
def test_separate_references_may_differ_in_number_and_classes(name):
    embeddings, labels = batch()
    references, reference_labels = batch((3, 9, 1, 2, 0, 20), seed=5)
    references.requires_grad_()
    others = {"reference_embeddings": references, "reference_labels": reference_labels}
    value, gradient = value_and_gradient(make(name), embeddings, labels, **others)
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert references.grad.isfinite().all()
    assert gradient.norm() > 0
    assert references.grad.norm() > 0


@pytest.mark.parametrize("name", REFERENCED)
def test_empty_memory_changes_nothing_and_a_full_one_does(name):
    embeddings, labels = batch((2, 3, 5, 7, 1, 4), dtype=torch.float64)
    plain, gradient = value_and_gradient(make(name), embeddings, labels)
    memory, memory_labels = batch((3, 9, 1, 2, 0, 20), seed=5, dtype=torch.float64)
    for count, same in ((0, True), (len(memory), False)):
        free = embeddings.clone().requires_grad_()
        remembered = (memory[:count], memory_labels[:count])
        value = make(name).with_memory(free, labels, *remembered, generator=rng())
        value.backward()
        assert (value.item() == pytest.approx(plain.item(), rel=1e-9)) == same
        assert torch.allclose(free.grad, gradient, rtol=1e-7, atol=1e-11) == same


@pytest.mark.parametrize("name", [n for n in EVERY if n not in REFERENCED])
def test_losses_without_references_say_so(name):
    embeddings, labels = batch()
    with pytest.raises(BenchmarkError, match="reference"):
        make(name)(embeddings, labels, embeddings, labels)


# recall_at_k ranks the query, and yet it is never one of its own positives
@pytest.mark.parametrize(
    "name",
    [name for name in MEANS if "include_query" in options_of(name) and name != "recall_at_k"],
)
def test_batch_as_its_own_references_gives_the_same(name):
    embeddings, labels = batch((2, 3, 5, 7, 3, 4), dtype=torch.float64)
    loss = make(name, include_query=True)
    expected, expected_gradient = value_and_gradient(loss, embeddings, labels)
    references = embeddings.clone().requires_grad_()
    others = {"reference_embeddings": references, "reference_labels": labels}
    value, gradient = value_and_gradient(loss, embeddings, labels, **others)
    assert value.item() == pytest.approx(expected.item(), rel=1e-9)
    summed = gradient + references.grad
    assert torch.allclose(summed, expected_gradient, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("name", [n for n in MEANS if n not in STOCHASTIC])
def test_leaving_the_query_out_equals_ranking_the_others(name):
    embeddings, labels = batch((2, 3, 5, 7, 1, 4), dtype=torch.float64)
    loss = make(name)
    if "include_query" in options_of(name):  # a loss without the option never counts the query
        loss = make(name, include_query=False)
    values = []
    for query, label in enumerate(labels):
        others = torch.arange(len(labels)) != query
        if label in labels[others]:
            alone = (embeddings[query, None], label[None])
            values.append(loss(*alone, embeddings[others], labels[others]))
    expected = torch.stack(values).mean()
    assert loss(embeddings, labels).item() == pytest.approx(expected.item(), rel=1e-9)


@pytest.mark.parametrize("name", RANKING)
def test_losses_of_queries_average_to_that_of_the_batch(name):
    embeddings, labels = batch((2, 3, 5, 7, 1, 4), dtype=torch.float64)
    loss = make(name)
    targets = labels.unsqueeze(1) == labels
    scores = embeddings @ embeddings.T
    values = loss.query_losses(scores, targets, self_pairs=True, generator=rng())
    assert values.shape == labels.shape
    without_positive = values.isnan().nonzero()
    assert without_positive.tolist() == [[17]]  # the class of one image
    components = [component for _, component in loss.components()]
    ranking = next(component for component in components if isinstance(component, RankingLoss))
    expected = ranking(embeddings, labels, generator=rng())
    assert values.nanmean().item() == pytest.approx(expected.item(), rel=1e-9)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_embeddings_are_computed_in_float32(name, dtype):
    embeddings, labels = batch()
    half = embeddings.to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        free = half.clone().requires_grad_()
        value = make(name)(free, labels, generator=rng())
    value.backward()
    exact, exact_gradient = value_and_gradient(make(name), half.float(), labels)
    assert value.dtype == torch.float32
    assert free.grad.dtype == dtype
    assert value.item() == pytest.approx(exact.item(), rel=1e-6)
    assert torch.allclose(free.grad.float(), exact_gradient, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_scaling_the_loss_scales_the_gradient(name):
    embeddings, labels = batch()
    _, gradient = value_and_gradient(make(name), embeddings, labels)
    scaled = embeddings.clone().requires_grad_()
    value = make(name)(scaled, labels, generator=rng())
    (1024 * value).backward()
    assert torch.allclose(scaled.grad, 1024 * gradient, rtol=1e-4, atol=1e-4)


# in an image with positives, and in one without
@pytest.mark.parametrize("row", [3, 17])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", EVERY)
def test_embeddings_that_are_not_finite_never_give_a_finite_loss(name, bad, row):
    embeddings, labels = batch((2, 3, 5, 7, 1, 4))
    embeddings[row, 2] = bad
    value = make(name)(embeddings, labels, generator=rng())
    assert not value.isfinite()


@pytest.mark.parametrize("count", [1, 2, 24])
@pytest.mark.parametrize("name", [name for name in EVERY if needs_positives(name)])
def test_batch_without_a_positive_is_a_clear_error(name, count):
    embeddings = batch()[0][:count]
    labels = torch.arange(count)
    loss = make(name)
    calls = [functools.partial(loss, embeddings, labels)]
    if name in REFERENCED:
        calls.append(functools.partial(loss, embeddings, labels, embeddings, labels + count))
        calls.append(functools.partial(loss.with_memory, embeddings, labels, embeddings, ~labels))
    for call in calls:
        with pytest.raises(RunError, match="no query of this batch has a positive"):
            call(generator=rng())


@pytest.mark.parametrize("name", [name for name in REFERENCED if needs_positives(name)])
def test_a_reference_may_be_the_positive_that_a_batch_lacks(name):
    embeddings, _ = batch()
    labels = torch.arange(len(embeddings))
    loss = make(name)
    for function in (loss, loss.with_memory):
        value = function(embeddings, labels, embeddings, labels, generator=rng())
        assert value.isfinite()


@pytest.mark.parametrize("count", [2, 25])
@pytest.mark.parametrize(
    "name", [n for n in MEANS if n not in (*SOFT_AMONG_POSITIVES, *STOCHASTIC)]
)
def test_a_single_class_is_ranked_perfectly(name, count):
    embeddings, labels = batch((count,), dtype=torch.float64)
    value, gradient = value_and_gradient(make(name), embeddings, labels)
    assert value.item() == pytest.approx(0.0, abs=1e-12)
    assert gradient.abs().max() < 1e-10


def answer_to(loss, case):
    """The value and the gradient with respect to embeddings before they are normalised."""
    free = case.embeddings.clone().requires_grad_()
    unit = functools.partial(torch.nn.functional.normalize, dim=1)
    others = ()
    if case.references is not None:
        others = (unit(case.references), case.reference_labels)
    function = loss.with_memory if case.memory else loss
    value = function(unit(free), case.labels, *others)
    value.backward()
    return value.item(), free.grad


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(UNEQUAL, id="batch"),
        pytest.param(HALVES, id="references"),
        pytest.param(dataclasses.replace(HALVES, memory=True), id="memory"),
    ],
)
@pytest.mark.parametrize(("name", "options"), [*OPTIONS, *BLACKBOX], ids=str)
def test_value_and_gradient_are_those_of_the_formula(name, options, case):
    expected = reference(name, options).answer(case)
    value, gradient = answer_to(create_loss(name, **options), case)
    # two orders of summation in float64
    assert value == pytest.approx(expected.value, rel=1e-9)
    assert expected.gradient.norm() > 1e-4
    assert torch.allclose(gradient, expected.gradient, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize(("name", "options"), [*OPTIONS, *BLACKBOX], ids=str)
def test_value_is_that_of_the_formula_where_scores_are_tied(name, options):
    loss = create_loss(name, **options)
    formula = reference(name, options)
    for seed in range(8):
        case = lattice("ties", [4, 3, 1, 2], seed, 6)
        expected = formula.answer(case, gradient=False)
        value = loss(case.embeddings, case.labels)
        assert value.item() == pytest.approx(expected.value, abs=1e-9)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_gradients_agree_with_finite_differences(name, options):
    loss = create_loss(name, **options)
    # lengths other than 1 also check the part of the gradient along the rows
    rows = (0.97 * HALVES.embeddings).requires_grad_()
    references = (0.97 * HALVES.references).requires_grad_()

    def of_rows(rows, references):
        return loss(rows, HALVES.labels, references, HALVES.reference_labels)

    # along drawn directions, a hundred times faster: the formula has every entry above
    assert torch.autograd.gradcheck(of_rows, (rows, references), fast_mode=True)
    scores = torch.rand(3, 11, generator=rng(), dtype=torch.float64) * 1.8 - 0.9
    targets = torch.zeros(3, 11, dtype=torch.bool)
    targets[0, [1, 4]] = True
    targets[1, [0, 5, 9]] = True

    def of_scores(scores):
        return loss.query_losses(scores, targets)[:2]

    assert torch.autograd.gradcheck(of_scores, scores.requires_grad_(), atol=1e-6)


def test_queries_without_positive_get_no_gradient_from_their_own_row():
    scores = torch.rand(3, 5, dtype=torch.float64, generator=rng()).requires_grad_()
    targets = torch.zeros(3, 5, dtype=torch.bool)
    targets[0, 2] = True
    values = make("smooth_ap", tau=0.1).query_losses(scores, targets)
    values.nansum().backward()
    assert values.isnan().tolist() == [False, True, True]
    assert scores.grad[0].abs().sum() > 0
    assert scores.grad[1:].abs().sum() == 0


@pytest.mark.parametrize("name", EVERY)
def test_wrong_shapes_are_clear_errors(name):
    embeddings, labels = batch()
    wrong = [
        (embeddings, labels[:-1], None, None),
        (embeddings, labels.float(), None, None),
        (embeddings[0], labels, None, None),
        (embeddings, labels, embeddings, None),
        (embeddings, labels, embeddings, labels[:-1]),
        (embeddings, labels, embeddings[:, :-1], labels),
    ]
    for arguments in wrong:
        with pytest.raises(RunError):
            make(name)(*arguments, generator=rng())


def test_an_unknown_loss_or_hyperparameter_names_the_nearest_one(messages):
    with messages.raised():
        create_loss("smooth_app")
    with messages.raised(("unknown_name", "tua")):
        make("smooth_ap", tua=1)


@pytest.mark.parametrize("name", EVERY)
def test_state_returns_after_saving_and_loading(name):
    first = make(name)
    second = create_loss(name, embedding_dim=DIM, num_classes=CLASSES, seed=8)
    second.load_state_dict(first.state_dict())
    embeddings, labels = batch()
    saved = first(embeddings, labels, generator=rng())
    loaded = second(embeddings, labels, generator=rng())
    assert saved.item() == loaded.item()
