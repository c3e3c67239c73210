"""``--expect``: one line and an exit status, for scores and for verdicts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import BenchmarkError

JUDGE = [
    "judge",
    "--n",
    "1",
    "--published",
    "65.9",
    "--spread",
    "0.3",
    "--ours",
]


@pytest.fixture
def archive(tmp_path):
    """Eight rows of two classes that overlap."""
    angles = np.radians([0, 10, 90, 12])
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    rows = np.concatenate([rows, rows[:, ::-1] + [0.0, 0.4]])
    np.savez(
        tmp_path / "rows.npz",
        embeddings=rows,
        labels=[1, 1, 2, 1, 2, 2, 2, 2],
    )
    return tmp_path / "rows.npz"


def call(*words):
    """Return the exit status and what is printed; raise the error of a call that has one."""
    done = CliRunner().invoke(app, [*map(str, words)])
    if isinstance(done.exception, BenchmarkError):
        raise done.exception
    return done.exit_code, done.output


def ours(archive, metric, protocol="others"):
    """Return a score in points, from the table."""
    path = archive.with_name("all.json")
    call("score", archive, "--json", path)
    records = json.loads(path.read_text())["records"]
    named = [each for each in records if (each["protocol"], each["metric"]) == (protocol, metric)]
    return 100 * named[0]["value"]


def test_a_score_passes_up_to_its_tolerance_and_fails_beyond(archive):
    score = ours(archive, "recall_at_1")
    assert 20 < score < 90
    line = f"recall_at_1 of others is {score:.2f}, expected {score + 0.2:g} within"
    near = (
        "score",
        archive,
        "--expect",
        f"recall_at_1={score + 0.2}",
        "--within",
    )
    assert call(*near, "0.2") == (0, f"passed: {line} 0.2\n")
    assert call(*near, "0.19") == (1, f"failed: {line} 0.19\n")


def test_without_a_tolerance_ours_rounds_to_the_expected_digits(archive):
    score = ours(archive, "map")
    assert score % 1 not in (0, 0.5)
    assert call("score", archive, "--expect", f"mAP={score:.1f}")[0] == 0
    assert call("score", archive, "--expect", f"mAP={score:.0f}")[0] == 0
    assert call("score", archive, "--expect", f"mAP={score + 0.11:.1f}")[0] == 1


def test_all_expected_scores_must_be_met_and_a_failure_names_the_others(
    archive,
):
    path = archive.with_name("out.json")
    words = [
        "--expect",
        f"map={ours(archive, 'map'):.2f}",
        "--expect",
        "R@3=1%",
        "--json",
        path,
    ]
    status, line = call("score", archive, *words)
    assert status == 1
    assert "recall_at_3 of others" in line
    assert "map" not in line
    expected = json.loads(path.read_text())["expected"]
    assert [(each["metric"], each["met"]) for each in expected] == [
        ("map", True),
        ("recall_at_3", False),
    ]


def test_an_expected_metric_brings_its_k(archive):
    words = ["score", archive, "--within", "100"]
    for metric in (
        "found_at_7",
        "mAP@7",
        "map_min_at_7",
        "nDCG@7",
        "mAP@C",
        "MRR",
    ):
        assert call(*words, "--expect", f"{metric}=50")[0] == 0


def test_a_named_protocol_is_the_one_that_counts(archive):
    other = ours(archive, "recall_at_1", "itself_miss")
    words = ["--expect", f"recall_at_1={other:.4f}", "--protocol"]
    assert call("score", archive, *words, "itself_miss")[0] == 0
    assert "of itself_miss is" in call("score", archive, *words, "itself_miss")[1]


def test_a_gallery_is_what_is_meant_where_there_is_one(archive):
    content = dict(np.load(archive))
    content |= {"query": np.arange(8) < 4, "gallery": np.arange(8) >= 4}
    np.savez(archive, **content)
    words = ["--expect", "recall_at_1=3", "--within", "100"]
    assert "recall_at_1 of gallery is" in call("score", archive, *words)[1]


def test_with_cameras_the_protocol_has_to_be_named(archive, messages):
    np.savez(archive, **np.load(archive), cameras=np.arange(8) % 3)
    words = ["--expect", "recall_at_1=3", "--within", "100"]
    with messages.raised():
        call("score", archive, *words)
    assert call("score", archive, *words, "--protocol", "others")[0] == 0


EXPECT = ("", "--expect")
UNKNOWN = ("unknown_name", "--expect")


@pytest.mark.parametrize(
    ("words", "problems"),
    [
        ("--expect recal_at_1=65.9", [UNKNOWN]),
        ("--expect recall_at_1=0.659", [EXPECT]),
        ("--expect recall_at_1", [EXPECT]),
        ("--expect R@1=65.9 --expect recall_at_1=70", [EXPECT]),
        ("--expect map=10 --within -1", [("", "--within")]),
        ("--expect map=10 --within nan", [("", "--within")]),
        ("--expect map_at_s=10 --expect found_at_7=0.1", [UNKNOWN, EXPECT]),
        ("--expect ndcg_graded_at_7=10", [UNKNOWN]),
        ("--expect map=3 --protocol gallery", []),
        ("--within 1", [EXPECT]),
    ],
)
def test_what_cannot_be_meant_is_refused(words, problems, archive, messages):
    with messages.raised(*problems):
        call("score", archive, *words.split())


@pytest.mark.parametrize(
    ("ours", "expected", "status", "line"),
    [
        ("62.4", "drifted", 0, "passed: 1 of 1 drifted"),
        (
            "62.4",
            "reproduced",
            1,
            "failed: 0 of 1 reproduced; it is drifted",
        ),
        ("65.8", "reproduced", 0, "passed: 1 of 1 reproduced"),
    ],
)
def test_a_verdict_is_a_gate(ours, expected, status, line):
    words = [*JUDGE, ours, "--expect", expected]
    assert call(*words) == (status, f"{line}\n")
    found, text = call(*words, "--json")
    answer = json.loads(text)
    assert found == status
    assert answer["passed"] is (status == 0)
    assert answer["answer"]["verdict"] in ("drifted", "reproduced")


def test_each_number_of_a_table_must_have_the_verdict(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("name,ours,published\nSOP,62.4,65.9\nCUB,60.0,60.1\n")
    words = [
        "judge",
        "--table",
        path,
        "--spread",
        "0.2",
        "--expect",
        "reproduced",
    ]
    assert call(*words) == (
        1,
        "failed: 1 of 2 reproduced; SOP is drifted\n",
    )
    path.write_text("name,ours,published\nSOP,65.8,65.9\nCUB,60.0,60.1\n")
    assert call(*words) == (0, "passed: 2 of 2 reproduced\n")
