"""Samplers: epochs are pure functions of seed and number, and hold what their names promise."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.input.samplers import check, create_sampler

LABELS = np.repeat(np.arange(40), [3, 4, 5, 8, 9] * 8)
CATEGORIES = LABELS // 10
SIZES = np.bincount(LABELS)


def make(name, batch_size=16, labels=LABELS, categories=CATEGORIES, **params):
    data = {"labels": labels, "categories": categories}
    return create_sampler(name, params, batch_size=batch_size, seed=0, **data)


def categories_of(batch):
    return tuple(np.unique(CATEGORIES[batch]).tolist())


def assert_no_image_twice(images, count):
    assert len(images) == count
    assert len(np.unique(images)) == count


@pytest.mark.parametrize("classes", ["walk", "uniform"])
def test_m_per_class_uses_each_class_until_too_few_images_are_left(classes):
    batches = make("m_per_class", batch_size=8, classes=classes).epoch(0)
    used = np.concatenate(batches)
    assert_no_image_twice(used, len(used))
    per_class = np.bincount(LABELS[used], minlength=40)
    assert (per_class % 4 == 0).all()
    assert (per_class[SIZES < 4] == 0).all()
    # at the end fewer than two classes can still fill their half of a batch
    has_four_left = SIZES - per_class >= 4
    assert has_four_left.sum() < 2


@pytest.mark.parametrize("classes", ["walk", "uniform"])
def test_m_per_class_batch_holds_m_of_each_class(classes):
    """Only the authors' walk shuffles the images of a batch."""
    grouped = []
    for batch in make("m_per_class", classes=classes).epoch(0):
        labels = LABELS[batch]
        _, counts = np.unique(labels, return_counts=True)
        assert set(counts.tolist()) == {4}
        changes = np.diff(labels) != 0
        grouped.append(changes.sum() == 3)
    if classes == "walk":
        assert not any(grouped)
    else:
        assert all(grouped)


def test_m_per_class_walks_over_one_order_so_that_the_same_classes_meet_again():
    """Of equal classes the walk takes the same ones until they are used up; uniform does not."""
    labels = np.repeat(np.arange(12), 16)

    def met(classes):
        sampler = make("m_per_class", labels=labels, categories=None, classes=classes)
        return {tuple(np.unique(labels[batch]).tolist()) for batch in sampler.epoch(0)}

    assert len(met("walk")) == 3  # 12 batches of four classes, four of each three
    assert len(met("uniform")) > 6


def test_a_class_meets_few_others_in_a_walk_and_most_where_classes_are_drawn():
    """As on iNaturalist: the papers' texts draw classes, their codes walk."""
    labels = np.repeat(np.arange(600), 57)
    met = {}
    for classes in ("walk", "uniform"):
        together = np.zeros((600, 600), bool)
        sampler = make("m_per_class", 224, labels, np.zeros_like(labels), classes=classes)
        batches = sampler.epoch(0)
        for batch in batches:
            members = np.unique(labels[batch])
            together[np.ix_(members, members)] = True
        others = together.sum(1)
        others = others[others > 0] - 1
        met[classes] = (round(others.mean()), len(batches), len(others))
    # the walk of an epoch leaves out the last classes, which fill no batch
    assert met == {"walk": (55, 140, 560), "uniform": (pytest.approx(446, abs=3), 148, 600)}


def test_m_per_class_draws_any_classes_and_images_again():
    epoch = make("m_per_class", classes="drawn").epoch(0)
    assert len(epoch) == len(LABELS) // 16
    groups = np.concatenate(epoch).reshape(-1, 4)
    assert (np.ptp(LABELS[groups], axis=1) == 0).all()
    drawn = LABELS[groups[:, 0]]
    assert (SIZES[drawn] == 3).any()  # small classes take part, too
    images_again = np.diff(np.sort(groups)) == 0
    classes_again = np.diff(np.sort(drawn.reshape(-1, 4))) == 0
    assert images_again.any()
    assert classes_again.any()


def test_category_pairs_shares_each_batch_and_shuffles_the_epoch():
    batches = make("category_pairs", batches_per_pair=8).epoch(0)
    pairs = []
    for batch in batches:
        categories, counts = np.unique(CATEGORIES[batch], return_counts=True)
        assert counts.tolist() == [8, 8]
        pairs.append(tuple(categories.tolist()))
    expected = itertools.combinations(range(4), 2)
    assert Counter(pairs) == dict.fromkeys(expected, 8)
    assert pairs != sorted(pairs)
    in_a_row = sum(first == second for first, second in itertools.pairwise(pairs))
    assert in_a_row < 24  # of 47 neighbours; without a shuffle 42


def test_category_pairs_draws_a_small_class_with_replacement_and_others_without():
    seen = set()
    for batch in make("category_pairs", batches_per_pair=20).epoch(0):
        labels, counts = np.unique(LABELS[batch], return_counts=True)
        assert set(counts.tolist()) == {4}
        for label in labels:
            images = np.unique(batch[LABELS[batch] == label])
            assert len(images) == 4 or SIZES[label] < 4
        seen.update(labels.tolist())
    assert seen == set(range(40))


def test_category_pairs_takes_whole_classes_that_fit():
    batches = make("category_pairs", samples_per_class=0, batch_size=24).epoch(0)
    for batch in batches:
        labels, counts = np.unique(LABELS[batch], return_counts=True)
        assert counts.tolist() == SIZES[labels].tolist()
        assert np.bincount(CATEGORIES[batch]).max() <= 12


@pytest.mark.parametrize("name", ["category_pairs", "category_windows"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_nb_categories_share_a_batch(name, count):
    batches = make(name, batch_size=24, nb_categories=count, batches_per_pair=2).epoch(0)
    groups = Counter(categories_of(batch) for batch in batches)
    expected = itertools.combinations(range(4), count)
    assert groups == dict.fromkeys(expected, 2)


@pytest.mark.parametrize("name", ["category_pairs", "category_windows"])
def test_the_largest_categories_alone_share_batches(name):
    labels = LABELS[:-9]  # the last class is gone: the fourth category is smallest
    categories = CATEGORIES[:-9]
    assert np.bincount(categories).argmin() == 3
    sampler = make(name, labels=labels, categories=categories, batches_per_pair=1, largest=3)
    pairs = sorted(categories_of(batch) for batch in sampler.epoch(0))
    assert pairs == [(0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize("name", ["category_pairs", "category_windows"])
def test_an_epoch_that_never_ends_is_refused_before_its_batches_are_made(name):
    labels = np.repeat(np.arange(98), 8)  # 98 categories are 3,612,280 fours
    with pytest.raises(DataError, match=r"3,612,280 batches.*Set 'largest'"):
        make(name, labels=labels, categories=labels, nb_categories=4, batches_per_pair=1)
    few = {"nb_categories": 4, "batches_per_pair": 1, "largest": 6}
    epoch = make(name, labels=labels, categories=labels, **few).epoch(0)
    assert len(epoch) == 15
    (problem,) = check(name, {"nb_categories": 4, "largest": 3}, 16)
    assert "largest 3" in problem.message


def test_a_category_of_few_classes_gives_a_shorter_share():
    labels = np.repeat(np.arange(11), 6)
    categories = np.repeat([0, 1], [60, 6])
    batches = make("category_pairs", labels=labels, categories=categories).epoch(0)
    assert {len(batch) for batch in batches} == {12}


def test_category_windows_take_all_images_of_a_class_but_at_their_ends():
    batches = make("category_windows", batch_size=32, batches_per_pair=3).epoch(0)
    for batch in batches:
        for half in np.split(batch, 2):
            labels = LABELS[half]
            inner = labels[~np.isin(labels, labels[[0, -1]])]
            found, counts = np.unique(inner, return_counts=True)
            assert counts.tolist() == SIZES[found].tolist()


def test_category_windows_go_on_where_the_last_batch_ended():
    batches = make("category_windows", batch_size=20, batches_per_pair=1).epoch(0)
    # three pairs hold category 0 of 58 images: three windows of ten, none of which overlap
    row = np.concatenate(batches)
    assert_no_image_twice(row[CATEGORIES[row] == 0], 30)


def test_class_windows_cut_a_row_of_whole_classes():
    batches = make("class_windows").epoch(0)
    row = np.concatenate(batches)
    assert_no_image_twice(row, len(LABELS) // 16 * 16)
    changes = np.diff(LABELS[row]) != 0
    assert changes.sum() < 40


def test_random_batches_hold_no_image_twice_in_an_epoch():
    row = np.concatenate(make("random").epoch(0))
    assert_no_image_twice(row, len(LABELS) // 16 * 16)


def test_all_classes_are_in_each_batch():
    labels = np.repeat(np.arange(9), [1, 5, 5, 5, 5, 5, 5, 5, 64])
    epoch = make("all_classes", batch_size=24, labels=labels, categories=None).epoch(0)
    counts = np.array([np.bincount(labels[batch], minlength=9) for batch in epoch])
    assert counts.shape == (100 // 24, 9)
    assert (counts.sum(axis=1) == 24).all()
    assert_no_image_twice(epoch[0], 24)
    assert (counts[:, 0] == 1).all()
    assert (counts[:, 1:] >= 2).all()
    # the seven others are of the 83 that are left, 62 of them of the last class
    assert counts[:, -1].mean() > 5
    first, second, *_ = np.sort(epoch)
    assert not np.array_equal(first, second)


def test_a_batch_that_does_not_hold_all_classes_is_refused():
    with pytest.raises(DataError, match=r"a batch of 79 .* all 40 classes; .* 80 or more"):
        make("all_classes", batch_size=79)
    assert make("all_classes", batch_size=79, samples_per_class=1)


@pytest.mark.parametrize("name", ["category_pairs", "category_windows", "category_and_rest"])
def test_categories_that_are_missing_are_asked_for(name):
    with pytest.raises(DataError, match="m_per_class"):
        make(name, categories=None)
    with pytest.raises(DataError, match="2 categories or more"):
        make(name, categories=np.zeros_like(LABELS))


@pytest.mark.parametrize(
    ("name", "params", "size"),
    [
        ("m_per_class", {}, 10),
        ("m_per_class", {}, 4),
        ("category_pairs", {}, 12),
        ("category_pairs", {"nb_categories": 3}, 16),
        ("category_pairs", {"samples_per_class": 0}, 15),
        ("category_windows", {"nb_categories": 3}, 16),
        ("category_and_rest", {}, 15),
    ],
)
def test_batch_size_that_does_not_fit_is_reported_without_data(name, params, size):
    (problem,) = check(name, params, size)
    assert str(size) in problem.message


def test_one_image_of_a_class_is_refused():
    (problem,) = check("category_pairs", {"samples_per_class": 1}, 16)
    assert "no positive" in problem.message


def test_whole_classes_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="no class that fits into a share of 2"):
        make("category_pairs", samples_per_class=0, batch_size=4)


def test_too_few_classes_for_one_batch_is_an_error():
    with pytest.raises(DataError, match="no batch"):
        make("m_per_class", batch_size=400)


# categories 0 (12 classes), 1 (2 classes) and 2, the classes without a category (20), of 5 images
REST_LABELS = np.repeat(np.arange(34), 5)
REST = np.repeat(np.repeat([0, 1, 2], [12, 2, 20]), 5)


@pytest.fixture
def batches():
    sampler = make("category_and_rest", 32, labels=REST_LABELS, categories=REST)
    return sampler.epoch(0)


def test_half_of_each_batch_comes_from_one_category_and_half_from_the_rest(batches):
    for batch in batches:
        counts = np.bincount(REST[batch], minlength=3)
        assert counts[2] == 16
        assert sorted(counts[:2]) == [0, 16]


def test_a_category_has_its_turns_rounded_up_and_in_a_row(batches):
    turns = [int(REST[batch].min()) for batch in batches]
    assert turns == [0, 0, 0, 0, 1]  # 2 x 60 / 32 = 3.75 and 2 x 10 / 32 = 0.625


def test_vehicleid_has_more_batches_than_the_formula_of_fast_ap():
    """Supplement A has the sum of 2 N / M over categories, the code rounds each one up."""
    categories = np.repeat(np.arange(251), 187)  # the last: without a category
    labels = np.arange(len(categories)) // 11
    batches = make("category_and_rest", 256, labels, categories).epoch(0)
    assert (len(batches), round(250 * 2 * 187 / 256)) == (500, 365)


def test_a_small_category_fills_its_half_with_its_images_again(batches):
    last = batches[-1]
    of_category = last[REST[last] == 1]
    _, counts = np.unique(of_category, return_counts=True)
    assert sorted(counts.tolist()) == [1] * 4 + [2] * 6


def test_the_rest_is_walked_through_whole_classes(batches):
    row = np.concatenate(batches)
    rest = row[REST[row] == 2]
    assert_no_image_twice(rest, 80)  # of 100
    assert len(np.unique(REST_LABELS[rest])) in (16, 17)
