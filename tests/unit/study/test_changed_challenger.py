"""A loss that is changed after its challenge is not judged by the runs of the loss before."""

from __future__ import annotations

import pytest

from benchmark.core.errors import ConfigError
from benchmark.study.own import write_challenge

LOSS = "def forward(x):\n    return x\n"


@pytest.fixture
def challenged(tmp_path):
    """Return a loss's file, and a function that challenges with it, after one run of it."""
    loss, results = tmp_path / "mine.py", tmp_path / "results"
    loss.write_text(LOSS)

    def challenge(folder=results):
        return write_challenge(loss, 1, tmp_path / "field", folder)

    challenge()
    run = results / "runs" / "glyphs_1k.fold1" / "frozen~trial00" / "mine" / "bs64" / "seed0"
    run.mkdir(parents=True)
    (run / "result.json").write_text("{}")
    return loss, challenge


def test_a_changed_loss_is_refused_until_its_runs_are_gone(challenged):
    loss, challenge = challenged
    loss.write_text(LOSS.replace("return x", "return 0 * x"))
    with pytest.raises(ConfigError, match=r"finished runs \(1\); delete .*/\*/\*/mine to"):
        challenge()
    next((loss.parent / "results").rglob("result.json")).unlink()
    challenge()


def test_words_alone_may_change(challenged):
    loss, challenge = challenged
    loss.write_text('"""Mine."""\n' + LOSS + "# as before\n")
    challenge()


def test_a_loss_without_runs_may_change(challenged, tmp_path):
    loss, challenge = challenged
    loss.write_text("x = 1\n")
    challenge(tmp_path / "elsewhere")
