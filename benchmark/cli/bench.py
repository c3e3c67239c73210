"""``python -m benchmark bench``: speed of the suite's parts beside the alternatives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmark.errors import ConfigError

group = typer.Typer(no_args_is_help=True, help="Measure speed against the alternatives, in one process.")


def register(app: typer.Typer) -> None:
    """Adds the group of verbs."""
    app.add_typer(group, name="bench")


@group.callback()
def bench() -> None:
    """Keeps ``losses`` a verb of its own while it is the only one."""


@group.command()
def losses(
    batch_sizes: Annotated[
        str | None, typer.Option(help="comma-separated batch sizes, multiples of 4; default: 32 to 4096")
    ] = None,
    quick: Annotated[bool, typer.Option(help="three batch sizes, few repeats: under a minute")] = False,
    threads: Annotated[int, typer.Option(help="threads of torch", min=1)] = 2,
    out: Annotated[Path, typer.Option(help="CSV file to write")] = Path("results/bench/losses.csv"),
) -> None:
    """Time forward + backward of every loss, of pytorch-metric-learning, of dense formulas and of the bare scores."""
    sizes = None if batch_sizes is None else _parse(batch_sizes)
    import torch

    from benchmark.bench import losses as measured

    torch.set_num_threads(threads)
    if sizes is None:
        sizes = measured.QUICK_BATCH_SIZES if quick else measured.BATCH_SIZES
    repeats, seconds = (5, 2.0) if quick else (15, 10.0)
    path = measured.run(sizes, repeats=repeats, seconds=seconds, out=out, show=typer.echo)
    typer.echo(f"written: {path}")


def _parse(text: str) -> list[int]:
    parts = text.split(",")
    wrong = [part for part in parts if not part.strip().isdigit() or int(part) < 8 or int(part) % 4]
    if wrong:
        raise ConfigError(
            "--batch-sizes", [f"'{part}' (allowed: multiples of 4, at least 8, separated by commas)" for part in wrong]
        )
    return [int(part) for part in parts]
