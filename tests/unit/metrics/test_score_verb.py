"""The verb ``score``: files of every format, what it prints, and what printed numbers come to."""

from __future__ import annotations

import csv
import json
import pickle
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import BenchmarkError
from benchmark.metrics import retrieval_metrics, score


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(60), 5)
    centres = rng.standard_normal((60, 16))
    return (centres[labels] + rng.standard_normal((300, 16))).astype(np.float32), labels


def call(*words):
    done = CliRunner().invoke(app, ["score", *map(str, words)])
    if isinstance(done.exception, BenchmarkError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def cells(output, protocol):
    line = next(each for each in output.splitlines() if each.startswith(f"{protocol} "))
    return [float(text) for text in re.findall(r"\d+\.\d+", line)]


def test_facts_come_first_then_a_row_a_protocol_then_who_uses_it(rows, tmp_path):
    np.savez(tmp_path / "all.npz", embeddings=rows[0], labels=rows[1])
    output = call(tmp_path / "all.npz")
    parts = [output.index(word) for word in ("Facts", "Scores in percent", "Protocols", "Metrics")]
    assert parts == sorted(parts)
    found = retrieval_metrics(*rows)
    first = cells(output, "others")
    assert first[0] == pytest.approx(100 * found["recall_at_1"], abs=0.005)
    assert first[4] == pytest.approx(100 * found["map"], abs=0.005)
    assert "fastreid/data/datasets/vehicleid.py" in output
    assert "FAULT: the query stays in the ranking" in output


def test_query_and_gallery_in_one_file_or_two_give_the_same_rows(rows, tmp_path):
    embeddings, labels = rows
    query = np.arange(300) % 3 == 0
    np.savez(
        tmp_path / "one.npz", embeddings=embeddings, labels=labels, query=query, gallery=~query
    )
    np.save(tmp_path / "query.npy", embeddings[query])
    np.save(tmp_path / "gallery.npy", embeddings[~query])
    for name, part in (("query", query), ("gallery", ~query)):
        lines = "\n".join(["vehicle", *map(str, labels[part])])
        (tmp_path / f"{name}.csv").write_text(lines + "\n")
    one = call(tmp_path / "one.npz")
    two = call(
        tmp_path / "query.npy", "--labels", tmp_path / "query.csv",
        "--gallery", tmp_path / "gallery.npy", "--gallery-labels", tmp_path / "gallery.csv",
    )  # fmt: skip
    assert cells(one, "gallery") == cells(two, "gallery")
    assert cells(one, "others") == cells(two, "others")


def test_names_of_arrays_are_guessed_where_one_fits_and_else_listed(rows, tmp_path):
    embeddings, labels = rows
    np.savez(tmp_path / "one.npz", feats=embeddings, pids=labels)
    np.savez(tmp_path / "two.npz", feats=embeddings, pids=labels, camids=np.arange(300) % 4)
    expected = cells(call(tmp_path / "one.npz"), "others")
    with pytest.raises(BenchmarkError, match=r"feats float32 \(300, 16\), pids int64 .*camids.*"
                                             r"Say --key labels=NAME"):  # fmt: skip
        call(tmp_path / "two.npz")
    output = call(tmp_path / "two.npz", "--key", "labels=pids", "--key", "cameras=camids")
    assert cells(output, "others") == expected
    assert cells(output, "others_other_camera")


def test_the_files_have_what_python_returns(rows, tmp_path):
    np.savez(tmp_path / "all.npz", embeddings=rows[0], labels=rows[1])
    call(tmp_path / "all.npz", "--csv", tmp_path / "s.csv", "--json", tmp_path / "s.json")
    content = json.loads((tmp_path / "s.json").read_text())
    records = score(*rows).records
    assert content["facts"]["rows"] == 300
    assert [each["value"] for each in content["records"]] == [each.value for each in records]
    with (tmp_path / "s.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [(each["protocol"], each["metric"]) for each in table] == [each[:2] for each in records]


def test_a_printed_number_is_found_where_it_arises_nearest_first(rows, tmp_path):
    np.savez(tmp_path / "all.npz", embeddings=rows[0], labels=rows[1])
    values = {each.protocol: 100 * each.value for each in score(*rows).records
              if each.metric == "recall_at_1"}  # fmt: skip
    asked = f"{values['one_per_class']:.1f}"
    output = call(tmp_path / "all.npz", "--published", asked, "--json", tmp_path / "s.json")
    part = output[output.index(f"Printed R@1 {asked}") :]
    lines = part.splitlines()[1:]
    assert lines[0].split()[0] == "one_per_class"
    assert lines[0].endswith("gives it")
    assert "is no proof" in part
    fits = json.loads((tmp_path / "s.json").read_text())["numbers"][0]["fits"]
    gaps = [abs(each["points"] - float(asked)) for each in fits]
    assert gaps == sorted(gaps)
    assert all(each["low"] <= each["points"] + 1e-9 for each in fits)
    output = call(tmp_path / "all.npz", "--published", "99.9")
    assert "No protocol gives it." in output


def test_the_interval_is_that_of_means_over_classes_drawn_with_replacement(rows, tmp_path):
    np.savez(tmp_path / "all.npz", embeddings=rows[0], labels=rows[1])
    call(tmp_path / "all.npz", "--published", "50", "--json", tmp_path / "s.json")
    fits = json.loads((tmp_path / "s.json").read_text())["numbers"][0]["fits"]
    ours = next(
        each for each in fits if (each["protocol"], each["metric"]) == ("others", "recall_at_1")
    )
    record = next(each for each in score(*rows).records if each[:2] == ("others", "recall_at_1"))
    by_class = record.scores.reshape(60, 5).mean(axis=1)
    rng = np.random.default_rng(1)
    drawn = [by_class[rng.integers(0, 60, 60)].mean() for _ in range(4000)]
    # ends of two percentile bootstraps of 2,000 and 4,000 draws differ by about 0.2 of an sd
    expected = 100 * np.quantile(drawn, [0.025, 0.975])
    assert [ours["low"], ours["high"]] == pytest.approx(expected, abs=0.3 * 100 * np.std(drawn))


def test_a_dataset_names_what_papers_print_for_it(rows, tmp_path):
    np.savez(tmp_path / "all.npz", embeddings=rows[0], labels=rows[1])
    output = call(tmp_path / "all.npz", "--dataset", "vehicleid")
    assert "Printed R@1 94.9, Smooth-AP, table 3: Smooth-AP small" in output
    with pytest.raises(BenchmarkError, match="did you mean 'vehicleid'"):
        call(tmp_path / "all.npz", "--dataset", "vehicleids")


def test_landmarks_are_scored_with_their_ground_truth(tmp_path):
    rng = np.random.default_rng(0)
    entries = [
        {"bbx": [0, 0, 9, 9], "easy": [q], "hard": [q + 4], "junk": [q + 8]} for q in range(3)
    ]
    truth = {
        "imlist": [f"image{n}" for n in range(12)],
        "qimlist": ["a", "b", "c"],
        "gnd": entries,
    }
    (tmp_path / "gnd.pkl").write_bytes(pickle.dumps(truth))
    np.save(tmp_path / "query.npy", rng.standard_normal((3, 8)).astype(np.float32))
    np.save(tmp_path / "gallery.npy", rng.standard_normal((20, 8)).astype(np.float32))
    words = [tmp_path / "query.npy", "--gallery", tmp_path / "gallery.npy"]
    output = call(*words, "--ground-truth", tmp_path / "gnd.pkl")
    assert all(len(cells(output, level)) == 1 for level in ("easy", "medium", "hard"))
    (tmp_path / "bad.pkl").write_bytes(b"no pickle")
    with pytest.raises(BenchmarkError, match="no ground truth of landmarks"):
        call(*words, "--ground-truth", tmp_path / "bad.pkl")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--published", "high"], "'high' is not a number such as 62.4"),
        (["--published", "62", "--metric", "recall@1"], "unknown metric 'recall@1'"),
        (["--key", "rows=embeddings"], "--key rows=embeddings: .* allowed: one of embeddings"),
        (["--key", "labels=ids"], "--key labels=ids: .* has embeddings float32"),
    ],
)
def test_what_people_type_is_checked(rows, tmp_path, words, message):
    np.savez(tmp_path / "all.npz", embeddings=rows[0], labels=rows[1])
    with pytest.raises(BenchmarkError, match=message):
        call(tmp_path / "all.npz", *words)
