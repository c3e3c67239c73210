"""Readers of what steps of a study leave for later ones: what was registered and selected, and the
scores of queries."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmark.core.query_scores import QueryScores, read_query_scores, write_query_scores
from benchmark.core.records import QUERIES
from benchmark.papers.registration import FILE as REGISTRATION
from benchmark.papers.registration import Registration
from benchmark.study.trials.selection import FILE as SELECTION
from benchmark.study.trials.selection import Choice, Selection
from hostile.run_targets import study
from hostile.targets import BYTES, JSON, Target


def registration_seeds() -> Mapping[str, bytes]:
    """Return what a study of two runs registers."""
    with tempfile.TemporaryDirectory() as folder:
        registered = Registration.of(study(), Path(folder))
    return {REGISTRATION: json.dumps(asdict(registered)).encode()}


def read_registration(folder: Path, content: bytes) -> None:
    """Read what was registered, and compare it with the study as it is."""
    (folder / REGISTRATION).write_bytes(content)
    Registration.read(folder)


def selection_seeds() -> Mapping[str, bytes]:
    """Return the choice of one setting."""
    choice = Choice("main", "glyphs_tiny", 32, "smooth_ap", 4, 2, 0.5, {"optimizer": {"lr": 0.01}})
    return {SELECTION: json.dumps(asdict(Selection.of(study(), [choice]))).encode()}


def read_selection(folder: Path, content: bytes) -> None:
    """Read the chosen settings."""
    (folder / SELECTION).write_bytes(content)
    Selection.read(folder / SELECTION)


def queries_seeds() -> Mapping[str, bytes]:
    """Return the scores of three queries."""
    whole = [np.arange(3), np.array([0, 0, 1]), np.array([1, 2, 1])]
    scores = QueryScores(*whole, {"map": np.array([1.0, 0.5, 1.0])})
    with tempfile.TemporaryDirectory() as folder:
        write_query_scores(Path(folder), "0" * 16, {"test": scores})
        return {QUERIES: (Path(folder) / QUERIES).read_bytes()}


def read_queries(folder: Path, content: bytes) -> None:
    """Read the scores of queries, and take a metric of them."""
    (folder / QUERIES).write_bytes(content)
    found = read_query_scores(folder, "0" * 16, {"test": {"map": 2.5 / 3}})
    assert found and found["test"].of("recall_at_1") is not None


TARGETS = (
    Target(QUERIES, read_queries, queries_seeds, BYTES, share=0.3),
    Target(f"parse {REGISTRATION}", read_registration, registration_seeds, JSON, share=0.3),
    Target(f"parse {SELECTION}", read_selection, selection_seeds, JSON, share=0.3),
)
