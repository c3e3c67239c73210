"""``python -m benchmark bench``: speed and memory of the suite's parts beside the alternatives."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.errors import ConfigError

group = typer.Typer()

Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="fewer sizes and repeats, no trainings on JPEGs, no studies: under two minutes",
    ),
]
Threads = Annotated[int, typer.Option(help="threads of torch, numpy and faiss", min=1)]
Out = Annotated[Path, typer.Option(help="folder to write to")]


def register(app: typer.Typer) -> None:
    """Adds the group of verbs."""
    app.add_typer(group, name="bench")


@group.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    quick: Quick = False,
    threads: Threads = 2,
    out: Out = Path("results/bench"),
) -> None:
    """Measure losses, loss beside network, evaluation, input, training and workflow; writes tables and figures.

    Example: python -m benchmark bench --quick
    """
    if context.invoked_subcommand is not None:
        return
    _prepare(threads)
    from perf.everything import run

    typer.echo(f"written: {run(out, quick=quick, threads=threads, show=typer.echo)}")


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
    """Time forward + backward of every loss, of pytorch-metric-learning, of dense formulas and of the bare scores.

    Example: python -m benchmark bench losses --batch-sizes 32,384
    """
    sizes = None if batch_sizes is None else _parse(batch_sizes)
    _prepare(threads)
    from perf import losses as measured

    section = measured.measured_section(sizes, out, quick=quick, show=typer.echo)
    typer.echo(f"written: {section.write_csv(out)}")


def _prepare(threads: int) -> None:
    """Make ``tests/perf`` importable and set the threads of every library; numpy reads its own only once."""
    folder = Path(__file__).resolve().parents[2] / "tests"
    if not (folder / "perf").is_dir():
        raise ConfigError(
            "bench", [f"{folder}/perf does not exist; run it in a checkout of the project"]
        )
    sys.path.insert(0, str(folder))
    os.environ.setdefault(
        "KINETO_LOG_LEVEL", "99"
    )  # torch's profiler, which counts memory, tells of each start
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)


def _parse(text: str) -> list[int]:
    parts = text.split(",")
    wrong = [part for part in parts if not part.strip().isdigit() or int(part) < 8 or int(part) % 4]
    if wrong:
        raise ConfigError(
            "--batch-sizes",
            [
                f"'{part}' (allowed: multiples of 4, at least 8, separated by commas)"
                for part in wrong
            ],
        )
    return [int(part) for part in parts]
