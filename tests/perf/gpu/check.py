"""All parts of the check, each with its budget; a part that fails does not stop the others."""

from __future__ import annotations

import argparse
import html
import importlib
import json
import platform
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SECONDS = 470  # of all parts together; starting takes some, too
Rows = list[dict[str, Any]]
Part = Callable[[Any], Iterator[dict[str, Any]]]


def main(arguments: list[str]) -> int:
    """Run ``bench gpu``; return the exit status, 1 when a part failed or missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmark bench gpu",
        description="Check losses, training, input and evaluation on a GPU, in eight minutes; "
        "on a CPU in miniature.",
    )
    parser.add_argument("--out", type=Path, default=Path("results/bench-gpu"), help="folder")
    return run(parser.parse_args(arguments).out, print)


def run(out: Path, show: Callable[[str], None], parts: Any = None) -> int:
    """Measure every part; write gpu.json, index.html and a figure into ``out``."""
    import torch

    from benchmark.core.code_version import code_version
    from perf.gpu.measuring import OutOfTimeError, Place, ended_after

    cuda = torch.cuda.is_available()
    name = torch.cuda.get_device_name() if cuda else "CPU, in miniature: no GPU was measured"
    report: dict[str, Any] = {
        "device": name,
        "date": time.strftime("%Y-%m-%d"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "code_version": code_version(),
        "parts": {},
    }
    torch.set_float32_matmul_precision("highest")
    place = Place(torch.device("cuda" if cuda else "cpu"), not cuda)
    begun = time.monotonic()
    for title, (budget, measure) in (parts or all_parts()).items():
        show(f"{title} ...")
        started = time.monotonic()
        part: dict[str, Any] = {"budget_seconds": budget, "rows": []}
        seconds = max(0.0, min(budget, SECONDS - (started - begun)))
        place.until = started + seconds
        try:
            with ended_after(seconds + budget / 10):  # one measurement may take too long by itself
                for row in measure(place):
                    part["rows"].append(row)
        except OutOfTimeError as error:
            part["cut"] = str(error)
        except Exception as error:
            traceback.print_exc()
            part["failed"] = f"{type(error).__name__}: {error}"[:500]
        part["seconds"] = time.monotonic() - started
        report["parts"][title] = part
        write(out, report)  # an interruption loses the rest alone
    missed = [title for title, part in report["parts"].items() if problems(part)]
    show(f"written: {out / 'index.html'}" + (f"; look at: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


def all_parts() -> dict[str, tuple[int, Part]]:
    """Return the parts with their seconds, which add up to less than eight minutes."""
    return {
        "Losses: GPU against CPU": (50, _part("of_losses", "values")),
        "Losses: time and memory": (150, _part("of_losses", "times")),
        "Share of the loss, and a bare loop": (90, _part("of_training", "share")),
        "Input": (40, _part("of_training", "reading")),
        "Evaluation": (60, _part("of_evaluation", "evaluation")),
        "Resuming": (30, _part("of_training", "resuming")),
        "Memory of the papers' recipes": (50, _part("of_training", "recipes")),
    }


def _part(module: str, function: str) -> Part:
    """Return a part that is imported when it begins: what it lacks is its own failure."""
    return lambda place: getattr(importlib.import_module(f"perf.gpu.{module}"), function)(place)


def problems(part: dict[str, Any]) -> bool:
    """Return whether a part, or one of its rows, failed or missed its bound."""
    rows = part.get("rows", [])
    return "failed" in part or any("failed" in row or row.get("within") is False for row in rows)


def write(out: Path, report: dict[str, Any]) -> None:
    """Write the JSON, the page and the figure of what is there."""
    from perf.gpu.figure import times_figure

    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu.json").write_text(json.dumps(report, indent=1) + "\n")
    times = report["parts"].get("Losses: time and memory", {}).get("rows", [])
    figure = times_figure(times)
    (out / "losses.svg").write_text(figure)
    facts = ", ".join(f"{key} {report[key]}" for key in ("date", "torch", "python", "code_version"))
    body = [f"<h1>{html.escape(report['device'])}</h1><p>{html.escape(facts)}</p>"]
    for title, part in report["parts"].items():
        body.append(f"<h2>{title}</h2><p>{part['seconds']:.0f} of {part['budget_seconds']} s</p>")
        why = part.get("failed", part.get("cut"))
        body.append(f"<p><b>{html.escape(why)}</b></p>" if why else "")
        body.append(figure if part.get("rows") is times and times else "")
        body.append(_table(part.get("rows", [])))
    style = "body{font:15px sans-serif;margin:2em}td,th{padding:.1em .6em;text-align:right}"
    head = f"<!doctype html><meta charset=utf-8><title>GPU check</title><style>{style}</style>"
    (out / "index.html").write_text(head + "\n".join(body) + "\n")


def _table(rows: Rows) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in columns)]
    for row in rows:
        cells = (row.get(name, "") for name in columns)
        words = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells)
        lines.append("".join(f"<td>{html.escape(word)}</td>" for word in words))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
