"""The verb ``score``: files of every format, what it prints, and what printed numbers come to."""

from __future__ import annotations

import csv
import json
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.cli.score import asked_numbers, nearest
from benchmark.core.errors import BenchmarkError, ConfigError
from benchmark.metrics import retrieval_metrics, score
from benchmark.metrics.protocols import Record
from benchmark.published.vocabulary import margin_of
from benchmark.stats.judgement import in_noise, judge, question


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(60), 5)
    centres = rng.standard_normal((60, 16))
    noise = rng.standard_normal((300, 16))
    return (centres[labels] + noise).astype(np.float32), labels


@pytest.fixture
def archive(rows, tmp_path):
    """The rows and their labels in one file."""
    path = tmp_path / "all.npz"
    np.savez(path, embeddings=rows[0], labels=rows[1])
    return path


def call(*words):
    done = CliRunner().invoke(app, ["score", *map(str, words)])
    if isinstance(done.exception, BenchmarkError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def json_of(archive, *words):
    """Return what ``--json`` writes."""
    path = archive.with_name("scores.json")
    call(archive, *words, "--json", path)
    return json.loads(path.read_text())


def cells(output, protocol):
    line = next(each for each in output.splitlines() if each.startswith(f"{protocol} "))
    return [float(text) for text in re.findall(r"\d+\.\d+", line)]


def test_facts_come_first_then_a_row_a_protocol_then_what_each_means(rows, archive):
    output = call(archive)
    headings = ("Facts", "Scores in percent", "Protocols", "Metrics")
    places = [output.index(heading) for heading in headings]
    assert places == sorted(places)
    found = retrieval_metrics(*rows)
    first = cells(output, "others")
    assert first[0] == pytest.approx(100 * found["recall_at_1"], abs=0.005)
    assert first[4] == pytest.approx(100 * found["map"], abs=0.005)
    assert "FAULT: the query stays in the ranking" in output
    user = "fastreid/data/datasets/vehicleid.py"
    assert user not in output
    assert user in call(archive, "--explain")


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(rows, tmp_path, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    query = np.arange(300) % 4 == 0
    content = {"query": query, "gallery": ~query, "cameras": np.arange(300) % 3}
    np.savez(
        tmp_path / "a.npz", embeddings=rows[0], labels=rows[1], categories=rows[1] % 3, **content
    )
    output = call(tmp_path / "a.npz", "--published", "61.3", "--spread", "1")
    assert len(cells(output, "gallery_other_category")) == (6 if width == 80 else 10)
    assert max(map(len, output.splitlines())) <= width


def test_query_and_gallery_in_one_file_or_two_give_the_same_rows(rows, tmp_path):
    embeddings, labels = rows
    query = np.arange(300) % 3 == 0
    one = tmp_path / "one.npz"
    np.savez(one, embeddings=embeddings, labels=labels, query=query, gallery=~query)
    for name, chosen in (("query", query), ("gallery", ~query)):
        np.save(tmp_path / f"{name}.npy", embeddings[chosen])
        lines = ["vehicle", *labels[chosen].astype(str)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    of_one = call(one)
    of_two = call(
        tmp_path / "query.npy",
        "--labels",
        tmp_path / "query.csv",
        "--gallery",
        tmp_path / "gallery.npy",
        "--gallery-labels",
        tmp_path / "gallery.csv",
    )
    assert cells(of_one, "gallery") == cells(of_two, "gallery")
    assert cells(of_one, "others") == cells(of_two, "others")


def test_names_of_arrays_are_guessed_where_one_fits_and_else_listed(rows, tmp_path):
    embeddings, labels = rows
    one = tmp_path / "one.npz"
    two = tmp_path / "two.npz"
    np.savez(one, feats=embeddings, pids=labels)
    np.savez(two, feats=embeddings, pids=labels, camids=np.arange(300) % 4)
    expected = cells(call(one), "others")
    words = r"feats float32 \(300, 16\), pids int64 .*camids.*Say --key labels=NAME"
    with pytest.raises(BenchmarkError, match=words):
        call(two)
    output = call(two, "--key", "labels=pids", "--key", "cameras=camids")
    assert cells(output, "others") == expected
    assert cells(output, "others_other_camera")


def test_the_files_have_what_python_returns(rows, archive, tmp_path):
    content = json_of(archive, "--csv", tmp_path / "s.csv")
    records = score(*rows).records
    assert content["facts"]["rows"] == 300
    assert [each["value"] for each in content["records"]] == [each.value for each in records]
    with (tmp_path / "s.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [each["protocol"] for each in table] == [each.protocol for each in records]
    assert [each["metric"] for each in table] == [each.metric for each in records]


def fits_of(archive, *words):
    """Return what ``--json`` has for each score that may be the one number asked for."""
    return json_of(archive, *words)["numbers"][0]["fits"]


def test_a_printed_number_is_found_where_it_arises_nearest_first(rows, archive):
    values = {(each.protocol, each.metric): 100 * each.value for each in score(*rows).records}
    asked = round(values["one_per_class", "recall_at_1"], 1)
    output = call(archive, "--published", asked)
    first, same, _, nearest, *_ = output.splitlines()
    assert first == f"Printed R@1 {asked}"
    assert same == "  prints so: one_per_class"
    assert nearest.split()[0] == "one_per_class"
    assert nearest.endswith("prints so")
    assert "That is no proof" in " ".join(output.split())
    fits = fits_of(archive, "--published", asked)
    gaps = [abs(fit["points"] - asked) for fit in fits]
    assert gaps == sorted(gaps)
    assert [abs(fit["distance"]) for fit in fits] == pytest.approx(gaps)
    for fit in fits:
        assert fit["prints_so"] == (round(fit["points"], 1) == asked)
        assert fit["in_noise"] is None


def test_no_mark_rests_on_the_interval_over_other_classes(rows, archive):
    (others,) = (
        100 * each.value
        for each in score(*rows).records
        if (each.protocol, each.metric) == ("others", "recall_at_1")
    )
    asked = f"{others + 0.3:.1f}"
    output = call(archive, "--published", asked)
    (fit,) = (
        fit
        for fit in fits_of(archive, "--published", asked)
        if (fit["protocol"], fit["metric"]) == ("others", "recall_at_1")
    )
    assert fit["low"] < float(asked) < fit["high"]
    assert not fit["prints_so"]
    assert "No protocol prints so; the nearest is " in output
    line = next(each for each in output.splitlines() if each.startswith("  others "))
    assert line.endswith("]")
    assert "gives" not in output


@pytest.mark.parametrize(("printed", "same"), [("58.6", 1), ("58.7", 1), ("58.5", 0), ("58.65", 1)])
def test_a_half_prints_either_way(printed, same):
    """Of 2,000 queries 1,173 are right: 58.65."""
    right = np.arange(2000) < 1173
    record = Record("others", "recall_at_1", right.mean(), None, 2000, {}, right, np.arange(2000))
    asked, _ = asked_numbers(printed, "recall_at_1", None, None)
    (fit,) = nearest([record], *asked, None)["fits"]
    assert fit["prints_so"] == same


def test_a_spread_marks_what_two_runs_of_it_differ_by(archive):
    # the difference of two runs has the spread sqrt(2) s; 95 % of it, and half a digit
    limit = 1.959964 * np.sqrt(2) * 0.3 + 0.05
    assert in_noise(62.0 + limit - 1e-4, 62.0, 0.3, 0.05)
    assert not in_noise(62.0 + limit + 1e-4, 62.0, 0.3, 0.05)
    asked = fits_of(archive, "--published", "50.0")[0]["points"]
    words = ("--published", f"{asked + 0.5:.1f}", "--spread", "0.3")
    nearest = fits_of(archive, *words)[0]
    assert (nearest["prints_so"], nearest["in_noise"]) == (False, True)
    lines = call(archive, *words).splitlines()
    assert lines[3].endswith("]  in noise")
    assert not lines[-1].endswith("in noise")
    alone = question(ours=[str(nearest["points"])], published=words[1], default_margin=margin_of)
    verdict = judge(replace(alone, spread=0.3))["test"]
    assert abs(nearest["distance"]) <= 1.959964 * verdict["se"] + alone.rounding


def test_a_printed_number_that_no_protocol_prints_is_said_so(archive):
    output = call(archive, "--published", "99.9")
    assert "No protocol prints so; the nearest is 0.10 points away." in output


def test_few_classes_have_no_interval_over_other_classes(rows, tmp_path):
    for classes, has_one in ((19, False), (20, True)):
        few = rows[1] < classes
        np.savez(tmp_path / "few.npz", embeddings=rows[0][few], labels=rows[1][few])
        words = (tmp_path / "few.npz", "--published", "50.3")
        by_name = {(fit["protocol"], fit["metric"]): fit for fit in fits_of(*words)}
        assert (by_name["others", "recall_at_1"]["low"] is not None) == has_one
        line = next(each for each in call(*words).splitlines() if each.startswith("  others "))
        assert line.endswith("none") != has_one


def test_the_interval_is_that_of_classes_left_out_one_by_one(rows, archive):
    by_name = {(fit["protocol"], fit["metric"]): fit for fit in fits_of(archive, "--published", 50)}
    ours = by_name["others", "recall_at_1"]
    records = {(each.protocol, each.metric): each for each in score(*rows).records}
    by_class = records["others", "recall_at_1"].scores.reshape(60, 5).mean(axis=1)
    mean = by_class.mean()
    half = stats.t.ppf(0.975, 59) * by_class.std(ddof=1) / np.sqrt(60) / (mean * (1 - mean))
    ends = 100 / (1 + np.exp(-np.log(mean / (1 - mean)) - np.array([-half, half])))
    assert (ours["low"], ours["high"]) == pytest.approx(ends)


def test_a_dataset_names_what_papers_print_for_it(archive):
    output = " ".join(call(archive, "--dataset", "vehicleid").split())
    assert "Printed R@1 94.9, Smooth-AP, table 3: Smooth-AP small" in output
    with pytest.raises(BenchmarkError, match="did you mean 'vehicleid'"):
        call(archive, "--dataset", "vehicleids")


def test_landmarks_are_scored_with_their_ground_truth(tmp_path):
    rng = np.random.default_rng(0)
    entries = [
        {"bbx": [0, 0, 9, 9], "easy": [query], "hard": [query + 4], "junk": [query + 8]}
        for query in range(3)
    ]
    truth = {
        "imlist": [f"image{number}" for number in range(12)],
        "qimlist": ["a", "b", "c"],
        "gnd": entries,
    }
    (tmp_path / "gnd.pkl").write_bytes(pickle.dumps(truth))
    np.save(tmp_path / "query.npy", rng.standard_normal((3, 8)).astype(np.float32))
    np.save(tmp_path / "gallery.npy", rng.standard_normal((20, 8)).astype(np.float32))
    words = [tmp_path / "query.npy", "--gallery", tmp_path / "gallery.npy"]
    output = call(*words, "--ground-truth", tmp_path / "gnd.pkl")
    for level in ("easy", "medium", "hard"):
        assert len(cells(output, level)) == 1
    queries, _, images = words
    with pytest.raises(BenchmarkError, match=r"3 queries and 12 images, .* 20 queries .* exchange"):
        call(images, "--gallery", queries, "--ground-truth", tmp_path / "gnd.pkl")
    (tmp_path / "bad.pkl").write_bytes(b"no pickle")
    with pytest.raises(BenchmarkError, match="no ground truth of landmarks"):
        call(*words, "--ground-truth", tmp_path / "bad.pkl")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--published", "high"], "'high' is not a number; write a number such as 62.4"),
        (["--published", "0.577"], "--published: 0.577 looks like a fraction; .* write 57.7"),
        (["--published", "-1"], "--published: -1 is not a score"),
        (["--published", "62", "--metric", "recal@1"], "unknown metric 'recal@1'; .*R@K"),
        (["--published", "62", "--metric", "mAP@0"], "unknown metric 'mAP@0'; .*mAP@K"),
        (["--published", "62", "--spread", "0"], "--spread: 0 must be above 0"),
        (["--key", "rows=embeddings"], "--key rows=embeddings: .* allowed: one of embeddings"),
        (["--key", "labels=ids"], "--key labels=ids: .* has embeddings float32"),
    ],
)
def test_what_people_type_is_checked(archive, words, message):
    with pytest.raises(BenchmarkError, match=message):
        call(archive, *words)


def halves(rows, folder, query=(), gallery=()):
    """Write queries and gallery in two files; the pairs change what each has."""
    embeddings, labels = rows
    for name, part, changes in (
        ("query", slice(0, None, 2), query),
        ("gallery", slice(1, None, 2), gallery),
    ):
        content = {"embeddings": embeddings[part], "labels": labels[part], **dict(changes)}
        np.savez(folder / f"{name}.npz", **content)
    return [folder / "query.npz", "--gallery", folder / "gallery.npz"]


EVERY = np.arange(150)
LARGE = EVERY + 2**62


@pytest.mark.parametrize(
    ("query", "gallery", "words"),
    [
        ({}, {"labels": EVERY.astype(str)}, "some labels are numbers and some text"),
        ({"labels": np.array(["a"] * 150)}, {"labels": np.array([b"a"] * 150)}, "some text"),
        ({"query": EVERY < 9}, {}, r"--gallery .* \['query'\] of a file"),
        ({}, {"gallery": EVERY}, r"--gallery .* \['gallery'\] of a file"),
        ({}, {"embeddings": np.ones((150, 8), "f4")}, "16 dimensions, the gallery 8"),
        ({}, {"labels": EVERY[:9]}, r"labels int64 \(9,\); each row needs one of the labels"),
        ({"names": EVERY[:9]}, {}, "each row needs one of the names"),
        ({"labels": np.full(150, np.nan)}, {}, "150 labels are missing .*row 0: .*nan"),
        ({"cameras": np.array(["", "a"] * 75)}, {}, "75 cameras are missing"),
        ({"embeddings": np.ones(150, "f4")}, {}, r"embeddings are float32 \(150,\)"),
    ],
)
def test_two_files_that_do_not_go_together_are_an_error(rows, tmp_path, query, gallery, words):
    with pytest.raises(BenchmarkError, match=words):
        call(*halves(rows, tmp_path, query, gallery))


def test_numbers_of_two_types_are_compared_exactly(rows, tmp_path):
    # all are equal as float64
    words = halves(rows, tmp_path, {"labels": LARGE.astype("u8")}, {"labels": LARGE + 200})
    with pytest.raises(BenchmarkError, match="gallery: no query has a positive"):
        call(*words)


def test_arrays_that_are_not_used_are_named(rows, tmp_path):
    words = halves(rows, tmp_path, {"camids": EVERY, "cameras": EVERY}, {"camids": EVERY})
    assert "not used: camids, camids, cameras of one file" in call(*words)


def test_embeddings_in_a_file_of_labels_are_an_error_unless_one_array_is_named(
    rows, archive, tmp_path
):
    embeddings, labels = rows
    np.save(tmp_path / "new.npy", embeddings[::-1])
    words = [tmp_path / "new.npy", "--labels", archive]
    with pytest.raises(BenchmarkError, match="embeddings come from the first"):
        call(*words)
    expected = score(embeddings[::-1].copy(), labels).records[0]
    output = call(*words, "--key", "labels=labels")
    assert cells(output, "others")[0] == pytest.approx(100 * expected.value, abs=0.005)
    assert "not used: embeddings" in output


@pytest.mark.parametrize("name", ["Query", "CAMERAS", " labels"])
def test_a_role_in_other_letters_is_asked_about(rows, tmp_path, name):
    path = tmp_path / "all.npz"
    np.savez(path, embeddings=rows[0], labels=rows[1], **{name: rows[1]})
    with pytest.raises(BenchmarkError, match=f"meant as {name.strip().lower()}"):
        call(path)


def test_options_that_need_others_are_an_error(archive):
    with pytest.raises(BenchmarkError, match="--gallery-labels needs --gallery"):
        call(archive, "--gallery-labels", archive)


def test_all_mistakes_of_the_question_are_told_at_once(archive):
    words = ("--published", "0.5", "--metric", "NMI", "--spread", "x", "--dataset", "cubs")
    with pytest.raises(ConfigError) as caught:
        call(archive, *words)
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize("name", ["mAP@R", "MAP@r", "map_at_r"])
def test_a_metric_may_be_named_as_the_table_shows_it(archive, name):
    assert call(archive, "--published", "50", "--metric", name).startswith("Printed mAP@R 50\n")


def test_a_printed_map_at_k_is_compared_with_all_three_and_by_its_own_name_with_one(archive):
    of_all = fits_of(archive, "--published", "50", "--metric", "mAP@7")
    assert {fit["metric"] for fit in of_all} == {"map_at_7", "map_min_at_7", "map_found_at_7"}
    of_one = fits_of(archive, "--published", "50", "--metric", "found@7")
    assert {fit["metric"] for fit in of_one} == {"map_found_at_7"}
    of_class = fits_of(archive, "--published", "50", "--metric", "mAP@C")
    assert {fit["metric"] for fit in of_class} == {"map_at_c"}
    gains = fits_of(archive, "--published", "50", "--metric", "nDCG@20")
    assert {fit["metric"] for fit in gains} == {"ndcg_at_20"}


def test_each_k_has_its_columns_and_no_word_touches_another(archive):
    words = ("--map-at", "10", "--map-at", "100000", "--map-at", "10")
    metrics = [record["metric"] for record in json_of(archive, *words)["records"]]
    assert {"map_min_at_10", "map_min_at_100000", "ndcg_at_10"} <= set(metrics)
    headings = call(archive, *words).split("Scores in percent")[1]
    assert {"found@10", "found@100000", "min@100000"} <= set(headings.split())


@pytest.mark.parametrize("words", [("--map-at", "3"), ("--label-sets",), ("--rerank",)])
def test_what_finished_runs_do_not_take_is_refused(words):
    with pytest.raises(BenchmarkError, match="--run and --study take --recall-at and --csv"):
        call("--study", "embedded", *words)


@pytest.mark.parametrize("k", ["0", "-1", "1.5", "1e3", "ten", "1000000001"])
def test_a_k_that_is_none_ends_with_what_is_allowed(archive, k):
    done = CliRunner().invoke(app, ["score", str(archive), "--map-at", k])
    assert done.exit_code == 2
    assert "--map-at" in done.output


@pytest.mark.parametrize("option", ["--junk", "--distractors"])
def test_a_label_of_no_row_is_an_error(archive, option):
    with pytest.raises(BenchmarkError, match="no row has the label 60"):
        call(archive, option, "60")


@pytest.mark.parametrize("kind", [np.int64, np.float32, str])
def test_junk_and_distractors_are_typed_as_numbers_or_text(rows, tmp_path, kind):
    embeddings, labels = rows
    labels = labels - 2  # two classes of five: -2 and -1
    path = tmp_path / "all.npz"
    np.savez(path, embeddings=embeddings, labels=labels.astype(kind))
    typed = ["--key", "labels=labels", "--junk", "-1", "--junk", "-2", "--distractors", "0"]
    found = json_of(path, *typed)
    expected = score(embeddings, labels, junk=[-1, -2], distractors=[0])
    assert found["facts"]["rows left out as junk"] == 10
    assert found["facts"] == expected.facts
    assert [row["value"] for row in found["records"]] == [row.value for row in expected.records]
