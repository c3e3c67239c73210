"""VehicleID's random galleries against an evaluation written out here, with ties and copies.

The protocol of Liu et al. (CVPR 2016): one random image of each vehicle makes the gallery, all
others query it, ten times; recalls are means over the times.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from made_up_embeddings import made_up

from benchmark.core.recipe import EvaluationConfig
from benchmark.datasets.base import Protocol
from benchmark.datasets.published import random_gallery
from benchmark.training.evaluate import EmbeddedProtocol, measure

AT = (1, 5, 20)
TIMES = 10
DIGITS = 5  # scores that agree so far are a tie, whatever the order of their sums


def measured(labels, rows, repeats):
    protocol = Protocol(SimpleNamespace(labels=labels), repeats=repeats)
    config = EvaluationConfig(recall_at=list(AT))
    embedded = {"small": EmbeddedProtocol(protocol, rows)}
    return measure(embedded, config, torch.device("cpu")).scores["small"]


def by_hand(labels, rows, repeats, ties_first, digits=DIGITS):
    """Return the means over the times, the match of a query standing before or behind its ties."""
    times = []
    for queries, gallery in repeats:
        scores = (rows[queries].astype(float) @ rows[gallery].astype(float).T).round(digits)
        ranks = []
        for line, query in zip(scores, queries, strict=True):
            own = line[labels[gallery] == labels[query]].item()
            before = (line > own).sum() if ties_first else (line >= own).sum() - 1
            ranks.append(1 + int(before))
        found = {f"recall_at_{k}": sum(rank <= k for rank in ranks) / len(ranks) for k in AT}
        first = sum(rank == 1 for rank in ranks) / len(ranks)
        mean = sum(1 / rank for rank in ranks) / len(ranks)
        times.append({**found, "map_at_r": first, "map": mean})
    return {name: sum(each[name] for each in times) / len(times) for name in times[0]}


def case(kind):
    labels, rows = made_up(kind)
    return labels, rows, tuple(random_gallery(labels, seed) for seed in range(TIMES))


def test_a_gallery_has_one_image_of_each_class_and_all_others_ask():
    labels, _, repeats = case("plain")
    for queries, gallery in repeats:
        assert sorted(labels[gallery]) == sorted(set(labels))
        assert sorted([*queries, *gallery]) == list(range(len(labels)))
    assert len({tuple(gallery) for _, gallery in repeats}) == TIMES


def test_without_ties_the_measures_are_those_by_hand():
    made = case("plain")
    expected = by_hand(*made, ties_first=True, digits=12)
    assert by_hand(*made, ties_first=False, digits=12) == expected
    assert measured(*made) == pytest.approx(expected, abs=1e-6)
    assert 0.1 < expected["recall_at_1"] < expected["recall_at_20"] < 1


@pytest.mark.parametrize("kind", ["ties", "duplicates"])
def test_ties_and_copies_stay_between_the_best_and_the_worst_order(kind):
    made = case(kind)
    ours, best, worst = measured(*made), *(by_hand(*made, ties_first=first) for first in (1, 0))
    assert best["map"] > worst["map"]
    for name, value in ours.items():
        assert worst[name] - 1e-6 <= value <= best[name] + 1e-6, name
