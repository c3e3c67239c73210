"""The check of a GPU, in miniature on a CPU, where hardly any package is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]
NEEDED = ("torch", "timm", "numpy", "pandas", "pillow")


def installed_besides(needed: tuple[str, ...]) -> set[str]:
    """Return the top-level modules of all packages but these and what they require."""
    wanted: set[str] = set()
    waiting = [canonicalize_name(name) for name in needed]
    while waiting:
        name = waiting.pop()
        with suppress(PackageNotFoundError):
            if name not in wanted:
                required = map(Requirement, requires(name) or ())
                here = (each for each in required if not each.marker or each.marker.evaluate())
                waiting += [canonicalize_name(each.name) for each in here]
        wanted.add(name)
    owners = packages_distributions()
    return {top for top in owners if wanted.isdisjoint(map(canonicalize_name, owners[top]))}


def test_every_part_runs_in_miniature_without_the_packages_of_the_suite(tmp_path):
    program = ROOT / "tests" / "helpers" / "without_packages.py"
    lacking = installed_besides(NEEDED) - {"benchmark"}
    assert {"snakemake", "mlflow", "faiss", "pydantic", "jsonschema", "simplejpeg"} <= lacking
    command = [
        sys.executable,
        str(program),
        ",".join(lacking),
        "bench",
        "gpu",
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    report = json.loads((tmp_path / "gpu.json").read_text())
    assert len(report["parts"]) == 7, done.stderr
    for title, part in report["parts"].items():
        assert "failed" not in part, (title, part)
        assert part["rows"], title
        wrong = [row for row in part["rows"] if "failed" in row or row.get("within") is False]
        assert not wrong, title
    assert done.returncode == 0
    page = (tmp_path / "index.html").read_text()
    assert "in miniature" in page and "<svg" in page and "smooth_ap" in page


def test_a_part_that_fails_leaves_the_others_and_is_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    from perf.gpu.check import run

    def broken(place):
        yield {"within": True}
        raise RuntimeError("no kernel")

    said = []
    parts = {"bad": (9, broken), "good": (9, lambda place: [{"within": True, "seconds": 1.5}])}
    assert run(tmp_path, said.append, parts) == 1
    report = json.loads((tmp_path / "gpu.json").read_text())
    assert report["parts"]["bad"]["failed"] == "RuntimeError: no kernel"
    assert report["parts"]["bad"]["rows"] == [{"within": True}]
    assert report["parts"]["good"]["rows"] == [{"within": True, "seconds": 1.5}]
    assert "look at: bad" in said[-1]


def test_time_that_is_over_cuts_a_part_and_keeps_what_it_has(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    from perf.gpu.check import run

    def endless(place):
        yield place.tried({"row": 1}, lambda: {"within": True})
        place.until = 0.0
        yield place.tried({"row": 2}, lambda: {"within": True})
        yield place.tried({"row": 3}, lambda: 1 / 0)
        place.until = time.monotonic() + 60
        yield place.tried({"row": 4}, lambda: 1 / 0)
        yield place.tried({"row": 5}, lambda: time.sleep(60))

    run(tmp_path, lambda text: None, {"endless": (0.5, endless)})
    part = json.loads((tmp_path / "gpu.json").read_text())["parts"]["endless"]
    assert "ended after" in part["cut"] and "failed" not in part
    assert part["rows"] == [
        {"row": 1, "within": True},
        {"row": 2, "skipped": "out of time"},
        {"row": 3, "skipped": "out of time"},
        {"row": 4, "failed": "ZeroDivisionError: division by zero"},
    ]
