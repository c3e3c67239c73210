"""``make bench``: all parts in one process; a part that fails does not stop the others.

``python -m perf.bench [--quick] [--threads 2] [--out DIR] [PART ...]`` with ``tests`` on the path.
"""

import argparse
import importlib
import inspect
import json
import os
import sys
import time
import traceback
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

# Part -> module with a function of its name, which yields rows and says how they were measured.
PARTS = {
    "losses": "losses",
    "large_batch": "losses",
    "evaluation": "evaluation",
    "own_scores": "own_scores",
    "heads": "heads",
    "reading": "reading",
}


def main() -> int:
    """Measure the parts that are named, or all; return 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    wanted = parser.parse_args()
    # numpy reads its number of threads only once
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(wanted.threads)
    parts = {name: PARTS[name] for name in wanted.parts or PARTS}
    failed, _ = run(parts, wanted.out, quick=wanted.quick, threads=wanted.threads, seconds={})
    return int(failed)


def run(
    parts: Mapping[str, str],
    out: Path,
    *,
    quick: bool,
    threads: int,
    seconds: Mapping[str, float],
    going_on: Collection[str] = (),
) -> tuple[bool, bool]:
    """Measure parts, write ``bench.md`` and a CSV for each; return if any failed, missed a bound.

    A row is in ``PART.jsonl`` as soon as it is measured.

    seconds   the time of a part: a row that would take as long as the longest one before, and end
              after it, does not begin
    going_on  parts that get the rows of an earlier call beside ``quick``, and measure the others
    """
    import pandas as pd
    import torch

    from benchmark.core.code_version import code_version
    from benchmark.core.provenance import hardware

    out.mkdir(parents=True, exist_ok=True)
    machine = ", ".join([hardware().cpu, *(hardware().gpus or ["no GPU"])])
    software = f"{threads} threads, torch {torch.__version__}, code {code_version()}"
    head = [f"# Benchmark\n\n{machine}, {software}."]
    tables = []
    targets = []
    failed = False
    for name in parts:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
        written = out / f"{name}.jsonl"
        rows = []
        longest = 0.0
        if name in going_on and written.is_file():
            rows = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
        written.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        start = last = time.monotonic()
        try:
            module = importlib.import_module(f"perf.{parts[name]}")
            for row in getattr(module, name)(quick, *([rows.copy()] if name in going_on else [])):
                targets += row.pop("targets", [])
                rows.append({**row, "threads": threads, "load": round(os.getloadavg()[0], 2)})
                print(f"{name}: {', '.join(f'{key} {_text(row[key])}' for key in row)}", flush=True)
                with written.open("a", encoding="utf-8") as stream:
                    stream.write(f"{json.dumps(rows[-1])}\n")
                now = time.monotonic()
                longest = max(longest, now - last)
                last = now
                if now + longest - start > seconds.get(name, float("inf")):
                    words = f"**{name} began no row after {now - start:.0f} of its"
                    head.append(f"{words} {seconds[name]} s.**")
                    break
        except Exception:
            traceback.print_exc()
            head.append(f"**{name} failed:** {traceback.format_exc().splitlines()[-1]}")
            failed = True
        print(f"{name}: {time.monotonic() - start:.0f} s")
        if rows:
            table = pd.DataFrame(rows)
            table.to_csv(out / f"{name}.csv", index=False)
            words = inspect.getdoc(getattr(module, name))
            tables.append(f"## {name}\n\n{words}\n\n{_markdown(rows)}")
            if draw := getattr(module, f"draw_{name}", None):
                draw(table, out)
        # written after each part, so that an interruption loses only the rest
        bounds = worst(targets)
        text = "\n\n".join([*head, f"## Targets\n\n{_markdown(bounds)}", *tables])
        (out / "bench.md").write_text(text + "\n")
    print(f"written: {out / 'bench.md'}")
    return failed, any(bound["met"] == "no" for bound in bounds)


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
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


if __name__ == "__main__":
    sys.exit(main())
