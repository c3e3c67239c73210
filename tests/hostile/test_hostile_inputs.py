"""Every hostile file of the corpus is refused with one clear message, or read harmlessly."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark.core.errors import BenchmarkError
from hostile import run_cases, study_cases
from hostile.cases import Case
from hostile.limits import limited
from hostile.targets import Target, all_targets

CASES = [
    *run_cases.CASES,
    *study_cases.CASES,
]
MUTATIONS = 8  # of each target


@pytest.fixture(autouse=True)
def within_limits() -> Iterator[None]:
    """End a test that hangs; expect no words of libraries about damaged files."""
    with warnings.catch_warnings(), limited():
        warnings.simplefilter("ignore")
        yield


def outcome(target: Target, folder: Path, content: bytes) -> str:
    """Return the message of a refusal, empty when the file was read."""
    try:
        target.read(folder, content)
    except BenchmarkError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_a_hostile_file_is_refused_with_words_or_read_harmlessly(case: Case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    target = all_targets()[case.target]
    target.prepare(tmp_path / "work")
    message = outcome(target, tmp_path / "work", case.content)
    if case.words:
        assert re.search(case.words, message), message or "it was read"
    assert len(message) < 5000, "nobody reads that"
    assert not (tmp_path / "owned").exists(), "something was run"


@pytest.mark.parametrize("name", all_targets())
def test_random_damage_to_a_good_file_is_refused_or_read(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target, rng = all_targets()[name], random.Random(f"corpus {name}")
    target.prepare(tmp_path)
    for number in range(MUTATIONS):
        seed = rng.choice(list(target.seeds().values()))
        content = seed if number == 0 else rng.choice(target.mutations)(seed, rng)
        outcome(target, tmp_path, content)
