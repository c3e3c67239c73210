"""Random damage to good files, for as long as it is told, and a list of what came of it.

    PYTHONPATH=tests:tests/helpers python -m hostile.fuzz --seconds 60

Each target works in a process of its own, so that a crash, a hang or a bomb is counted and the rest
goes on. The exit status is 1 when anything but a refusal came of an input; the inputs stay in
``--keep``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from benchmark.core.errors import BenchmarkError
from benchmark.losses.catalogue import load_catalogue
from hostile.limits import WAITING, limited
from hostile.targets import Target, all_targets

MEMORY = 6 << 30  # bytes of address space that a reader may take beyond none: torch alone maps 3 GB
ROUND_SECONDS = 5.0


def work(target: Target, seed: int, seconds: float, folder: Path, report: Path) -> None:
    """Feed mutations to a target for some seconds; append their number and causes to a file."""
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what libraries in C say about damaged files
    rng = random.Random(f"{target.name} {seed}")
    seeds = list(target.seeds().values())
    workplace = folder / "work"
    workplace.mkdir()
    target.prepare(workplace)
    current = folder / "current"
    ends, count = time.monotonic() + seconds, 0
    with open(report, "a") as lines:
        while time.monotonic() < ends:
            content = rng.choice(target.mutations)(rng.choice(seeds), rng)
            if rng.random() < 0.3:
                content = rng.choice(target.mutations)(content, rng) if _sound(content) else content
            current.write_bytes(content)
            count += 1
            if cause := _cause(target, workplace, content):
                print(f"cause\t{cause}", file=lines, flush=True)
                (report.parent / f"{report.stem}-{abs(hash(cause)) % 10**8}.bin").write_bytes(
                    content
                )
            if count % 50 == 0:
                print("inputs\t50", file=lines, flush=True)
        print(f"inputs\t{count % 50}", file=lines, flush=True)


def _sound(content: bytes) -> bool:
    """Say whether a mutation can be parsed again, for a second round."""
    return len(content) < 100_000


def _cause(target: Target, workplace: Path, content: bytes) -> str:
    """Return the error of a reader in one line, empty when it reads or refuses."""
    try:
        with limited():
            target.read(workplace, content)
    except BenchmarkError:
        return ""
    except BaseException as error:
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if "/benchmark/" in f.filename
        ]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        return f"{type(error).__name__} {where}  {str(error)[:100]!r}"
    return ""


def run_round(target: Target, seed: int, seconds: float, keep: Path) -> tuple[int, Counter[str]]:
    """Return the inputs tried and the causes found by one process."""
    report = keep / f"{''.join(c if c.isalnum() else '_' for c in target.name)}.txt"
    report.write_text("")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = multiprocessing.get_context("fork").Process(
            target=work, args=(target, seed, seconds, folder, report)
        )
        process.start()
        process.join(seconds + 2 * WAITING)
        stuck = process.is_alive()
        if stuck:
            process.kill()
            process.join()
        lines = [line.split("\t", 1) for line in report.read_text().splitlines()]
        inputs = sum(int(value) for kind, value in lines if kind == "inputs")
        causes = Counter(value for kind, value in lines if kind == "cause")
        if process.exitcode:
            causes["stuck" if stuck else f"exit status {process.exitcode}"] += 1
            if (folder / "current").exists():
                path = keep / f"{report.stem}-exit{process.exitcode}-{seed}.bin"
                path.write_bytes((folder / "current").read_bytes())
    return inputs, causes


def main() -> int:
    """Fuzz the targets in turn; return 1 when a cause was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="default: the clock")
    parser.add_argument("--targets", default="", help="only those with this in their name")
    parser.add_argument("--keep", type=Path, default=Path("results/test-artifacts/fuzz"))
    chosen = parser.parse_args()
    chosen.keep.mkdir(parents=True, exist_ok=True)
    keep = chosen.keep.resolve()
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    # the catalogue is built once, not by each process in a folder of its own
    os.environ["BENCHMARK_CACHE"] = str(keep / "cache")
    load_catalogue()
    targets = [one for name, one in all_targets().items() if chosen.targets in name]
    ends = time.monotonic() + chosen.seconds
    slot = min(ROUND_SECONDS, chosen.seconds / sum(target.share for target in targets))
    inputs: Counter[str] = Counter()
    causes: Counter[tuple[str, str]] = Counter()
    number = 0
    while time.monotonic() < ends:
        target = targets[number % len(targets)]
        count, found = run_round(target, seed + number, slot * target.share, keep)
        inputs[target.name] += count
        for cause, times in found.items():
            if (target.name, cause) not in causes:
                print(f"{target.name}: {cause}", flush=True)
            causes[target.name, cause] += times
        number += 1
    for name, count in inputs.items():
        print(f"{count:8,} {name}")
    print(
        f"{inputs.total():8,} inputs in {chosen.seconds:.0f} s, seed {seed}; {len(causes)} causes"
    )
    return 1 if causes else 0


if __name__ == "__main__":
    sys.exit(main())
