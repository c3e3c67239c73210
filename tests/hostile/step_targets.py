"""Readers of what steps of a study leave for later ones, and of what people freeze or hand over."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import yaml

from benchmark.core.array_file import read_arrays
from benchmark.core.query_scores import QueryScores, read_query_scores, write_query_scores
from benchmark.core.record_files import read_record
from benchmark.core.records import QUERIES
from benchmark.papers.frozen import load_frozen
from benchmark.papers.printed.cells import PrintedCell
from benchmark.papers.printed.gap import gap_decreases
from benchmark.papers.registration import FILE as REGISTRATION
from benchmark.papers.registration import Registration
from benchmark.report.records import (
    SUMMARY,
)
from benchmark.study import Study, load_study
from benchmark.study.format import ROOT
from benchmark.study.looks import FILE as LOOKS
from benchmark.study.looks import at_present_look
from benchmark.study.trials.selection import FILE as SELECTION
from benchmark.study.trials.selection import Choice, Selection
from hostile.run_targets import study
from hostile.study_targets import small_study
from hostile.targets import BYTES, JSON, TEXT, Target


def registration_seeds() -> Mapping[str, bytes]:
    """Return what a study of two runs registers."""
    with tempfile.TemporaryDirectory() as folder:
        registered = Registration.of(study(), Path(folder))
    return {REGISTRATION: json.dumps(asdict(registered)).encode()}


def read_registration(folder: Path, content: bytes) -> None:
    """Read what was registered, and compare it with the study as it is."""
    own = folder / study().name
    own.mkdir(exist_ok=True)
    (own / REGISTRATION).write_bytes(content)
    Registration.read(own)


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


def read_looks(folder: Path, content: bytes) -> None:
    """Read the present look, and load a study of two looks at it."""
    (folder / "x").mkdir(exist_ok=True)
    (folder / "x" / LOOKS).write_bytes(content)
    at_present_look(study_of_looks(), folder)


@functools.cache
def study_of_looks() -> Study:
    """Return a study of two looks, whose file is gone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.yaml")
        path.write_text(yaml.safe_dump(small_study(seeds=[0, 1, 2], looks=[2, 3])))
        return load_study(path)


def read_frozen(folder: Path, content: bytes) -> None:
    """Read frozen scores."""
    (folder / "frozen.csv").write_bytes(content)
    load_frozen(folder / "frozen.csv")


def frozen_seeds() -> Mapping[str, bytes]:
    """Return the first rows of the shipped frozen scores."""
    lines = (ROOT / "results" / "reference" / "embedded.csv").read_bytes().splitlines(keepends=True)
    return {"csv": b"".join(lines[:9])}


def read_gap(folder: Path, content: bytes) -> None:
    """Read the decrease of the gap from an analysis."""
    analysis = folder / "analyses" / "decomposability_gap"
    analysis.mkdir(parents=True, exist_ok=True)
    (analysis / SUMMARY).write_bytes(content)
    (analysis / "figure.csv").write_text(
        "kind,trained_at,measured_at,seed,loss,gap\ngap,32,32,0,sup_ap,4.0\ngap,32,32,0,roadmap,3\n"
    )
    gap_decreases(folder)


def gap_seeds() -> Mapping[str, bytes]:
    """Return what 'papers' reads of a summary."""
    return {SUMMARY: b'{"schema": 1, "quick": false, "runs": [{"run_id": "tiny/a"}]}'}


def read_printed(folder: Path, content: bytes) -> None:
    """Read the cells of printed tables."""
    (folder / "tables.json").write_bytes(content)
    read_record(
        tuple[PrintedCell, ...], folder / "tables.json", "what papers print", "papers STUDY"
    )


def printed_seeds() -> Mapping[str, bytes]:
    """Return a cell without a run."""
    return {"cells": json.dumps([asdict(PrintedCell("roadmap2021", "table1", 3))]).encode()}


def read_features(folder: Path, content: bytes) -> None:
    """Read recorded arrays: one of real numbers, one of whole numbers, one of text."""
    (folder / "x.npz").write_bytes(content)
    with contextlib.suppress(OSError, ValueError):  # caches are made again
        read_arrays(
            folder / "x.npz", {"features": ("f", 2), "labels": ("iu", 1), "names": ("U", 1)}
        )


def features_seeds() -> Mapping[str, bytes]:
    """Return arrays, stored and compressed."""
    arrays = {
        "features": np.ones((3, 2), np.float32),
        "labels": np.arange(3),
        "names": np.array(["a", "b"]),
    }
    seeds = {}
    for save in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        save(stream, **arrays)
        seeds[save.__name__] = stream.getvalue()
    return seeds


TARGETS = (
    Target(f"parse {LOOKS}", read_looks, lambda: {LOOKS: b'{"look": 2, "begun": ["x"]}'}, JSON),
    Target("frozen runs", read_frozen, frozen_seeds, TEXT, share=0.3),
    Target("gap summary", read_gap, gap_seeds, JSON, share=0.3),
    Target("printed cells", read_printed, printed_seeds, JSON, share=0.3),
    Target("arrays", read_features, features_seeds, BYTES, share=0.3),
    Target(QUERIES, read_queries, queries_seeds, BYTES, share=0.3),
    Target(f"parse {REGISTRATION}", read_registration, registration_seeds, JSON, share=0.3),
    Target(f"parse {SELECTION}", read_selection, selection_seeds, JSON, share=0.3),
)
