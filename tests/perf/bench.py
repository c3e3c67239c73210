"""``make bench``: all parts in one process; a part that fails does not stop the others.

``python -m perf.bench [--quick] [--threads 2] [--out DIR] [PART ...]`` with ``tests`` on the path.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

# modules with ``rows(quick)``, which yields rows, and with words on how they were measured
PARTS = ("losses", "large_batch", "evaluation", "reading", "training", "workflow")


def main() -> int:
    """Measure the parts that are named, or all; return 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, no JPEGs, no studies")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    wanted = parser.parse_args()
    # numpy reads its number of threads only once
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(wanted.threads)
    wanted.out.mkdir(parents=True, exist_ok=True)
    return run(wanted.parts or PARTS, wanted.out, quick=wanted.quick, threads=wanted.threads)


def run(parts: Iterable[str], out: Path, *, quick: bool, threads: int) -> int:
    """Measure parts and write ``bench.md`` and a CSV for each; return 1 when one failed."""
    import pandas as pd
    import torch

    from benchmark.core.provenance import hardware

    head = [f"# Benchmark\n\n{hardware().cpu}, {threads} threads, torch {torch.__version__}."]
    tables, targets, failed = [], [], 0
    for name in parts:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
        rows, start = [], time.monotonic()
        try:
            part = importlib.import_module(f"perf.{name}")
            for row in part.rows(quick):
                targets += row.pop("targets", [])
                rows.append(row)
                print(f"{name}: {', '.join(f'{key} {_text(row[key])}' for key in row)}", flush=True)
        except Exception:
            traceback.print_exc()
            head.append(f"**{name} failed:** {traceback.format_exc().splitlines()[-1]}")
            failed = 1
            continue
        finally:
            print(f"{name}: {time.monotonic() - start:.0f} s")
        table = pd.DataFrame(rows)
        table.to_csv(out / f"{name}.csv", index=False)
        if hasattr(part, "draw"):
            part.draw(table, out)
        tables.append(f"## {name}\n\n{part.__doc__}\n{_markdown(rows)}")
        # written after each part, so that an interruption loses only the rest
        text = "\n\n".join([*head, f"## Targets\n\n{_markdown(worst(targets))}", *tables])
        (out / "bench.md").write_text(text + "\n")
    print(f"written: {out / 'bench.md'}")
    return failed


def worst(targets: Iterable[Any]) -> list[dict[str, Any]]:
    """Return a row for each thing that has a bound, with the worst number measured for it."""
    found = []
    for what, group in groupby(sorted(targets, key=lambda each: each.what), lambda each: each.what):
        one = min(group, key=lambda each: each.margin)
        bound = f"{'at least' if one.at_least else 'at most'} {one.bound:g} {one.unit}"
        met = "yes" if one.margin >= 1 else "no"
        found.append({"what": what, "measured": one.value, "target": bound, "met": met})
    return found


def _markdown(rows: list[dict[str, Any]]) -> str:
    columns = list(rows[0]) if rows else ["nothing"]
    lines = [columns, ["---"] * len(columns), *([_text(row[key]) for key in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(value: Any) -> str:
    show: Callable[[Any], str] = "{:.4g}".format if isinstance(value, float) else str
    return "" if value is None else show(value)


if __name__ == "__main__":
    sys.exit(main())
