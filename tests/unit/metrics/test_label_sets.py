"""Labels that are sets, beside a brute force over the definitions, query by query."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, ndcg_score
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import BenchmarkError, DataError
from benchmark.metrics import score

WORDS = np.array(["sea", "sky", "a b", "é", "01", "1"])
K = 9
# Metrics are of ranks alone: both sides add up few fractions in float64.
CLOSE = 1e-12


def made_up(seed, codes=False):
    """Return rows, a matrix of sets, and the numbers of queries and gallery."""
    rng = np.random.default_rng(seed)
    sets = rng.random((150, len(WORDS))) < 0.25
    sets[np.arange(150), rng.integers(0, len(WORDS), 150)] = True
    centres = rng.standard_normal((len(WORDS), 12))
    rows = sets @ centres + rng.standard_normal((150, 12))
    if codes:
        rows = np.sign(rows)
    order = rng.permutation(150)
    return rows.astype(np.float32), sets.astype(int), order[:40], order[40:]


def texts(sets):
    return ["|".join(WORDS[row.astype(bool)]) for row in sets]


def values(found, protocol):
    return {each.metric: each.value for each in found.records if each.protocol == protocol}


def order_of(scores):
    """Return the ranking of scores, equal ones in the order of the rows."""
    return np.argsort(-scores, kind="stable")


def brute_force(similar, sets, query, gallery):
    """Return what a protocol gives: the definitions of the page, one query after the other."""
    found = {}
    for number in query:
        items = gallery[gallery != number]
        ranking = items[order_of(similar[number, items])]
        shared = sets[ranking] @ sets[number]
        places = np.flatnonzero(shared) + 1
        if not len(places):
            continue
        precision = np.arange(1, len(places) + 1) / places
        first = precision[places <= K]
        gains = 2.0**shared - 1
        discounts = 1 / np.log2(np.arange(2, len(gains) + 2))
        best = np.sort(gains)[::-1]
        of_query = {
            "recall_at_1": places[0] == 1,
            "map": average_precision_score(shared > 0, -np.arange(len(shared))),
            "map_at_r": precision[places <= len(places)].sum() / len(places),
            "r_precision": np.mean(shared[: len(places)] > 0),
            "mrr": 1 / places[0],
            f"map_at_{K}": first.sum() / len(places),
            f"map_min_at_{K}": first.sum() / min(K, len(places)),
            f"map_found_at_{K}": first.mean() if len(first) else 0,
            f"ndcg_at_{K}": ndcg_score([shared > 0], [-np.arange(len(shared))], k=K),
            f"ndcg_graded_at_{K}": (gains * discounts)[:K].sum() / (best * discounts)[:K].sum(),
        }
        for metric, value in of_query.items():
            found.setdefault(metric, []).append(value)
    return {metric: np.mean(each) for metric, each in found.items()}


def cosines(rows):
    unit = rows.astype(float)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return unit @ unit.T


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("block", [None, 1])
def test_every_metric_is_that_of_a_brute_force_over_the_definitions(seed, block, monkeypatch):
    if block:  # one query a block
        monkeypatch.setattr("benchmark.metrics.protocols.BLOCK_BYTES", 8)
    rows, sets, query, gallery = made_up(seed)
    found = score(
        rows,
        sets,
        query=query,
        gallery=gallery,
        label_sets=True,
        map_at=(K,),
    )
    every = np.arange(150)
    expected = {
        "gallery": brute_force(cosines(rows), sets, query, gallery),
        "others": brute_force(cosines(rows), sets, every, every),
    }
    for protocol, of_protocol in expected.items():
        ours = values(found, protocol)
        for metric, value in of_protocol.items():
            assert ours[metric] == pytest.approx(value, abs=CLOSE), (
                protocol,
                metric,
            )


@pytest.mark.parametrize("seed", range(3))
def test_codes_are_ranked_by_hamming_distance_as_the_hashing_papers_do(
    seed,
):
    rows, sets, query, gallery = made_up(seed, codes=True)
    differing = (rows[:, None] != rows).sum(axis=2)
    found = score(
        rows,
        sets,
        query=query,
        gallery=gallery,
        label_sets=True,
        map_at=(K,),
    )
    ours = values(found, "gallery_hamming")
    for metric, value in brute_force(-differing, sets, query, gallery).items():
        assert ours[metric] == pytest.approx(value, abs=CLOSE), metric


@pytest.mark.parametrize("codes", [False, True])
def test_sets_of_one_label_give_the_numbers_of_labels(codes):
    rows, sets, query, gallery = made_up(5, codes)
    labels = sets.argmax(axis=1)
    given = {"query": query, "gallery": gallery, "map_at": (K,)}
    single = score(rows, labels, **given)
    as_sets = score(rows, labels, label_sets=True, **given)
    expected = {(each.protocol, each.metric): each.value for each in single.records}
    found = {(each.protocol, each.metric): each.value for each in as_sets.records}
    graded = {key: value for key, value in found.items() if "graded" in key[1]}
    for (protocol, _), value in graded.items():
        assert value == found[protocol, f"ndcg_at_{K}"]  # each shares one label
    lost = {key for key in expected if key[0] == "one_per_class"}
    lost |= {key for key in expected if key[1] in ("map_at_c", "map_at_r_by_class")}
    assert found.keys() - graded.keys() == expected.keys() - lost
    for key in found.keys() - graded.keys():
        assert found[key] == pytest.approx(expected[key], abs=CLOSE), key


@pytest.mark.parametrize(
    "form",
    [
        lambda sets: sets.astype(bool),
        lambda sets: sets.astype(np.float32),
        lambda sets: sets.tolist(),
        lambda sets: torch.from_numpy(sets),
        texts,
        lambda sets: np.array(texts(sets)),
        lambda sets: [f" {text.replace('|', ' | ')}|{text}" for text in texts(sets)],
        lambda sets: ["|".join(text.split("|")[::-1]) for text in texts(sets)],
    ],
)
def test_a_matrix_and_texts_in_any_order_are_the_same_sets(form):
    rows, sets, _, _ = made_up(0)
    expected = score(rows, sets, label_sets=True)
    found = score(rows, form(sets), label_sets=True)
    assert found.facts == expected.facts
    assert [each.value for each in found.records] == [each.value for each in expected.records]


def test_what_needs_a_class_is_left_out_with_its_reason():
    rows, sets, _, _ = made_up(0)
    found = score(rows, sets, label_sets=True, cameras=np.arange(150) % 3)
    reason = "rows with sets of labels have no class"
    for name in (
        "one_per_class",
        "map_at_r_by_class",
        "map_at_c",
        "other_camera",
    ):
        assert f"{name}: {reason}" in found.left_out
    assert f"other_category: {reason}" not in found.left_out
    assert not {each.protocol for each in found.records} & {
        "one_per_class",
        "others_other_camera",
    }
    assert found.facts["labels"] == len(WORDS)
    assert found.facts["different sets of labels"] == len(set(texts(sets)))
    assert "classes" not in found.facts


def test_the_query_that_stays_counts_as_a_hit_or_as_a_miss():
    rows, sets, _, _ = made_up(1)
    found = score(rows, sets, label_sets=True)
    averages = {"itself_hit": [], "itself_miss": []}
    for number, scores in enumerate(cosines(rows)):
        order = order_of(np.where(np.arange(150) == number, 9.0, scores))
        hits = sets[order] @ sets[number] > 0
        for name, of_first in (
            ("itself_hit", True),
            ("itself_miss", False),
        ):
            hits[0] = of_first
            averages[name].append(average_precision_score(hits, -np.arange(150)))
    for name, of_queries in averages.items():
        assert values(found, name)["map"] == pytest.approx(np.mean(of_queries), abs=CLOSE)


EYE = np.eye(4, 3, dtype=np.float32) + 1


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (
            [[1, 0], [0, 1], [1, 1], [0, 2]],
            r"row 3 .* has 2 in column 1; .* 1 for a label",
        ),
        ([[1, 0], [0, -1], [1, 1], [0, 1]], "row 1 .* has -1 in column 1"),
        (
            np.array([[1, 0], [0.5, 1], [1, 1], [0, 1]]),
            "row 1 .* 0.5.* in column 0",
        ),
        (
            np.array([[1, 0], [np.nan, 1], [1, 1], [0, 1]]),
            "row 1 .* has nan in column 0",
        ),
        ([["a", "b"]] * 4, "row 0 .* has a in column 0"),
        (
            [[1, 0], [0, 0], [1, 1], [0, 0]],
            r"2 rows have no label, .* row 1 .*\[0, 0\]",
        ),
        (
            ["a|b", "a||b", "a", "b"],
            r"1 rows have no label, or an empty one, from row 1 .*a\|\|b",
        ),
        (["a|b", "a", "|", "b"], "from row 2"),
        (["a|b", "a", "b|", "b"], "from row 2"),
        (["a|b", "a", "", "b"], "from row 2"),
        (["a|b", "a", None, "b"], "the label of row 2 is None"),
        (["a|b", "a", 1.5, "b"], "the label of row 2 is 1.5"),
        (
            [[1, 0], [0, 1], [1, 1], [0, 1, 1]],
            r"the label of row 0 is \[1, 0\]",
        ),
        ([[1, 0], [0, 1], [1, 1]], r"labels of shape \(3, 2\)"),
        (["a", "b"], r"labels of shape \(2,\)"),
        (np.ones((4, 2, 2), int), r"labels of shape \(4, 2, 2\)"),
        (np.ones((4, 0), int), "4 rows have no label"),
        (["a", "b", "c", "d"], "no query has a positive"),
    ],
)
def test_labels_that_are_no_sets_are_an_error(labels, words):
    with pytest.raises(DataError, match=words):
        score(EYE, labels, label_sets=True)


def test_a_matrix_without_the_option_stays_an_error():
    with pytest.raises(DataError, match=r"each row needs one label.*label_sets"):
        score(EYE, np.ones((4, 2), int))
    with pytest.raises(DataError, match="junk and distractors"):
        score(EYE, np.ones((4, 2), int), label_sets=True, junk=[1])


def test_a_stroke_without_the_option_is_part_of_one_label():
    found = score(EYE, ["a|b", "a|b", "a", "a"])
    assert found.facts["classes"] == 2


def call(*words):
    done = CliRunner().invoke(app, ["score", *map(str, words)])
    if isinstance(done.exception, BenchmarkError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_files_with_a_matrix_or_with_lists_give_what_python_gives(tmp_path):
    rows, sets, query, gallery = made_up(2, codes=True)
    expected = score(
        rows,
        sets,
        query=query,
        gallery=gallery,
        label_sets=True,
        map_at=(K,),
    )
    mask = np.isin(np.arange(150), query)
    np.savez(
        tmp_path / "all.npz",
        embeddings=rows,
        labels=sets,
        query=query,
        gallery=gallery,
    )
    np.save(tmp_path / "rows.npy", rows)
    lines = ["labels,query,gallery"]
    lines += [f"{text},{one},{not one}" for text, one in zip(texts(sets), mask, strict=True)]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    for words in (
        [tmp_path / "all.npz"],
        [tmp_path / "rows.npy", "--labels", tmp_path / "labels.csv"],
    ):
        options = (
            "--label-sets",
            "--map-at",
            K,
            "--json",
            tmp_path / "s.json",
        )
        output = " ".join(call(*words, *options).split())
        found = json.loads((tmp_path / "s.json").read_text())
        if words[0].suffix == ".npz":  # masks have the order of the rows
            values_found = [each["value"] for each in found["records"]]
            assert values_found == [each.value for each in expected.records]
        names = [(each["protocol"], each["metric"]) for each in found["records"]]
        assert names == [(each.protocol, each.metric) for each in expected.records]
        assert "map_at_c: rows with sets of labels have no class" in output


def test_two_files_with_one_label_or_several_in_each_cell_are_one_list(
    tmp_path,
):
    rows, _, _, _ = made_up(0)
    for name, part, labels in (
        ("q", rows[:3], "1\n2\n3"),
        ("g", rows[3:6], "1|2\n3\n4"),
    ):
        np.save(tmp_path / f"{name}.npy", part)
        (tmp_path / f"{name}.csv").write_text(f"labels\n{labels}\n")
    words = [
        tmp_path / "q.npy",
        "--labels",
        tmp_path / "q.csv",
        "--label-sets",
        "--json",
    ]
    words += [tmp_path / "s.json", "--gallery", tmp_path / "g.npy"]
    call(*words, "--gallery-labels", tmp_path / "g.csv")
    found = json.loads((tmp_path / "s.json").read_text())
    first = next(each for each in found["records"] if each["protocol"] == "gallery")
    assert first["queries"] == 3
    np.save(tmp_path / "g.npy", np.eye(3, 2, dtype=int))
    with pytest.raises(BenchmarkError):
        call(*words, "--gallery-labels", tmp_path / "g.npy")


def test_a_printed_number_of_sets_has_no_interval_over_classes(tmp_path):
    rows, sets, _, _ = made_up(2)
    np.savez(tmp_path / "all.npz", embeddings=rows, labels=sets)
    words = (
        tmp_path / "all.npz",
        "--label-sets",
        "--published",
        "50",
        "--metric",
        "nDCG@9",
    )
    call(*words, "--json", tmp_path / "s.json")
    fits = json.loads((tmp_path / "s.json").read_text())["numbers"][0]["fits"]
    assert {"ndcg_at_9", "ndcg_graded_at_9"} == {fit["metric"] for fit in fits}
    assert {fit["low"] for fit in fits} == {None}


def test_rows_without_a_label_are_an_error_or_left_out(tmp_path):
    rows, sets, _, _ = made_up(2)
    sets[[3, 7]] = 0
    np.savez(tmp_path / "all.npz", embeddings=rows, labels=sets)
    words = [tmp_path / "all.npz", "--label-sets"]
    with pytest.raises(BenchmarkError, match=r"2 labels are missing \(row 3"):
        call(*words)
    call(*words, "--unlabelled", "leave-out", "--json", tmp_path / "s.json")
    stays = sets.any(axis=1)
    expected = score(rows[stays], sets[stays], label_sets=True)
    found = json.loads((tmp_path / "s.json").read_text())
    assert [each["value"] for each in found["records"]] == [each.value for each in expected.records]
