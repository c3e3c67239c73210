"""Hold our samplers against what the ROADMAP authors' samplers drew.

``python tests/reference/replay_samplers.py FILE [SEED]`` reads statistics in the layout of
authors_samplers.json, makes the class sizes from SEED (see README.md), draws epochs with our
samplers, prints each figure beside ours with its tolerance, and exits 1 when one is farther off: by
2 % of the figure, or by five standard errors of the difference where that is more. It exits 2 for a
file that cannot be read.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from exit_status import end_with  # noqa: E402

from benchmark.input.samplers import create_sampler  # noqa: E402

FILE = Path(__file__).parent / "authors_samplers.json"
SEED = 3
RECORDED_EPOCHS = 5  # that the authors' figures are means over
EPOCHS = 20
RELATIVE = 0.02
STANDARD_ERRORS = 5.0
SMALL = 4  # a class of fewer images is small, where whole classes are taken
CASE = re.compile(
    r"(?P<kind>hierarchical|m_per_class|windows) bs(?P<batch_size>\d+)(?: (?P<samples>\d+)/class)?"
    r"(?: (?P<batches>\d+)/pair)?(?: (?P<categories>\d+) categories)?"
)


def case_of(name: str) -> tuple[str, dict[str, Any], int]:
    """Return sampler, parameters and batch size of a case: ``m_per_class bs64 4/class``."""
    match = CASE.fullmatch(name)
    if match is None:
        raise SystemExit(f"case '{name}' is not named like 'm_per_class bs64 4/class'")
    named = {
        "samples_per_class": match["samples"],
        "batches_per_pair": match["batches"],
        "nb_categories": match["categories"],
    }
    sampler = {"hierarchical": "category_pairs", "windows": "category_windows"}
    params: dict[str, Any] = {key: int(text) for key, text in named.items() if text is not None}
    if match["kind"] == "m_per_class":
        params["classes"] = "walk"
    return sampler.get(match["kind"], match["kind"]), params, int(match["batch_size"])


def made_up(sampler: str, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return labels (N,) and categories (N,), or None, of the images on record for a sampler."""
    generator = np.random.default_rng(seed)
    if sampler == "m_per_class":
        drawn = np.round(np.exp(generator.normal(3.2, 1.0, 2000)))
        return np.repeat(np.arange(2000), np.maximum(3, drawn).astype(int)), None
    sizes = np.concatenate([generator.integers(2, 13, 200) for _ in range(12)])
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return labels, labels // 200


def statistics(
    batches: list[np.ndarray], labels: np.ndarray, categories: np.ndarray | None, samples: int
) -> dict[str, float]:
    """Return the figures of one epoch; a small class has fewer than ``samples`` images."""
    sizes = np.bincount(labels)
    small = sizes < samples
    lengths = np.array([len(batch) for batch in batches])
    number = np.repeat(np.arange(len(batches)), lengths)  # of the batch of each slot
    images = np.concatenate(batches)
    slots = labels[images]
    seen = np.isin(np.arange(len(sizes)), slots)
    tenth = len(batches) // 10
    half = len(batches) // 2
    distinct_images = _presence(number, images).sum(1)
    figures = {
        "batches": float(len(batches)),
        "share_of_images_seen": len(np.unique(images)) / len(labels),
        "share_of_small_classes_seen": _mean(seen[small]),
        "share_of_other_classes_seen": _mean(seen[~small]),
        "share_of_batches_with_a_repeated_image": _mean(distinct_images < lengths),
        "share_of_slots_of_small_classes": _mean(small[slots]),
        "distinct_classes_per_batch": _mean(_presence(number, slots).sum(1)),
        "mean_class_size_first_half": _mean(sizes[slots[number < half]]),
        "mean_class_size_second_half": _mean(sizes[slots[number >= half]]),
        "distinct_classes_last_tenth": _distinct(slots[number >= len(batches) - tenth]),
        "distinct_classes_first_tenth": _distinct(slots[number < tenth]),
    }
    if categories is not None:
        found = _presence(number, categories[images])
        same = (found[1:] == found[:-1]).all(1)
        figures["share_of_neighbours_from_the_same_pair"] = _mean(same)
        figures["distinct_pairs"] = float(len(np.unique(found, axis=0)))
    return figures


def compare(case: str, recorded: dict[str, Any], seed: int) -> list[tuple[str, Any, Any, float]]:
    """Return (figure, theirs, ours, tolerance) of each figure on record for a case."""
    name, params, batch_size = case_of(case)
    labels, categories = made_up(name, seed)
    sampler = create_sampler(
        name, params, labels=labels, categories=categories, batch_size=batch_size, seed=seed
    )
    epochs = [sampler.epoch(number) for number in range(EPOCHS)]
    samples = params.get("samples_per_class") or SMALL
    figures = [statistics(batches, labels, categories, samples) for batches in epochs]
    lengths = sorted({len(batch) for batches in epochs for batch in batches})
    rows: list[tuple[str, Any, Any, float]] = []
    for key, theirs in recorded.items():
        if key not in figures[0] and key != "lengths":
            raise SystemExit(
                f"case '{case}' has the figure '{key}'; known are lengths, {', '.join(figures[0])}"
            )
        if key == "lengths":
            rows.append((key, theirs, lengths, 0.0))
            continue
        values = np.array([found[key] for found in figures])
        error = values.std(ddof=1) * math.sqrt(1 / RECORDED_EPOCHS + 1 / EPOCHS)
        tolerance = max(RELATIVE * abs(theirs), STANDARD_ERRORS * error)
        rows.append((key, theirs, float(values.mean()), float(tolerance)))
    return rows


def agrees(theirs: Any, ours: Any, tolerance: float) -> bool:
    """Say whether a figure is within its tolerance; lists and missing values must be equal."""
    if isinstance(theirs, list):
        return bool(theirs == ours)
    if math.isnan(theirs):
        return math.isnan(ours)
    return bool(abs(theirs - ours) <= tolerance)


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of each case; end with a message for a file that has none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict) or not content:
        raise SystemExit(f"{path} has no cases; it must be an object of named cases")
    content.pop("seed", None)  # the command line gives it
    for case, figures in content.items():
        case_of(case)
        if not isinstance(figures, dict):
            raise SystemExit(f"{path}: case '{case}' is no object of figures")
        for key, value in figures.items():
            lengths = key == "lengths" and isinstance(value, list)
            if not lengths and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise SystemExit(f"{path}: '{key}' of case '{case}' is {value!r}, not a number")
    return content


def main(path: Path, seed: int) -> int:
    """Print all figures of a file; return 1 when one of them is off, else 0."""
    status = 0
    print(f"{'':44}{'theirs':>12}{'ours':>12}  tolerance")
    for case, recorded in read(path).items():
        print(case)
        for key, theirs, ours, tolerance in compare(case, recorded, seed):
            right = agrees(theirs, ours, tolerance)
            status |= not right
            shown = [
                f"{value:.6g}" if isinstance(value, float) else str(value)
                for value in (theirs, ours, tolerance)
            ]
            off = "" if right else "OFF"
            print(f"  {key:42}{shown[0]:>12}{shown[1]:>12}  +- {shown[2]:10}{off}")
    return status


def _presence(number: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return bool (batches, values): which values batch ``number`` (slots,) holds."""
    found = np.zeros((number[-1] + 1, values.max() + 1), dtype=bool)
    found[number, values] = True
    return found


def _distinct(values: np.ndarray) -> float:
    return float(len(np.unique(values)))


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


if __name__ == "__main__":
    _, *given = sys.argv
    if len(given) == 1:
        given.append(str(SEED))
    if len(given) != 2 or not given[1].isdecimal():
        raise SystemExit("usage: python tests/reference/replay_samplers.py FILE [SEED]")
    end_with(main, Path(given[0]), int(given[1]))
