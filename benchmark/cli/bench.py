"""``python -m benchmark bench``: speed and memory of the suite's parts beside the alternatives."""

import importlib
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmark.cli import MAX_THREADS, app, echo, folder_to_write
from benchmark.core.errors import ConfigError
from benchmark.core.plain import whole_number

MAX_BATCH = 100_000

group = typer.Typer()
app.add_typer(group, name="bench")

Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="fewer sizes and repeats, no trainings on JPEGs, no studies: under two minutes",
    ),
]
Threads = Annotated[
    int, typer.Option(help="threads of torch, numpy and faiss", min=1, max=MAX_THREADS)
]
Out = Annotated[Path, typer.Option(help="folder to write to", callback=folder_to_write)]


@group.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    quick: Quick = False,
    threads: Threads = 2,
    out: Out = Path("results/bench"),
) -> None:
    """Measure losses, network, evaluation, input, training and workflow; write tables and figures.

    Example: python -m benchmark bench --quick
    """
    if context.invoked_subcommand is None:
        _prepare(threads)
        report = importlib.import_module("perf.report")
        echo(f"written: {report.run(out, quick=quick, threads=threads, show=echo)}")


@group.command()
def losses(
    batch_sizes: Annotated[
        str | None,
        typer.Option(help="comma-separated batch sizes, multiples of 4; default: 32 to 4096"),
    ] = None,
    quick: Quick = False,
    threads: Threads = 2,
    out: Out = Path("results/bench"),
) -> None:
    """Time forward + backward of losses, pytorch-metric-learning, dense formulas and bare scores.

    Example: python -m benchmark bench losses --batch-sizes 32,384
    """
    sizes = None if batch_sizes is None else _parse(batch_sizes)
    _prepare(threads)
    measured = importlib.import_module("perf.losses")
    section = measured.section_of_sizes(sizes, out, quick=quick, show=echo)
    echo(f"written: {section.write_csv(out)}")


@group.command()
def gpu(out: Out = Path("results/bench-gpu")) -> None:
    """Check losses, training, input and evaluation on a GPU in eight minutes; a CPU in miniature.

    Example: python -m benchmark bench gpu --out results/bench-gpu
    """
    _prepare(1)
    raise typer.Exit(importlib.import_module("perf.gpu.check").run(out, echo))


def _prepare(threads: int) -> None:
    """Make ``tests/perf`` importable and set the threads of every library."""
    folder = Path(__file__).resolve().parents[2] / "tests"
    if not (folder / "perf").is_dir():
        raise ConfigError(
            "bench", [f"{folder}/perf does not exist; run it in a checkout of the project"]
        )
    sys.path.insert(0, str(folder))
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler reports each start
    # numpy reads its number of threads only once
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)


def _parse(text: str) -> list[int]:
    sizes = {part: whole_number(part.strip()) or 0 for part in text.split(",")}
    wrong = [part for part, size in sizes.items() if size % 4 or not 8 <= size <= MAX_BATCH]
    if wrong:
        allowed = f"(allowed: multiples of 4 from 8 to {MAX_BATCH}, separated by commas)"
        raise ConfigError("--batch-sizes", [f"'{part[:100]}' {allowed}" for part in wrong])
    return list(sizes.values())
