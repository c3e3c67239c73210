"""What commands import, for the process that a workflow forks them from."""

import importlib
import pkgutil

FOR_STEPS = (
    "matplotlib.figure",
    "benchmark.report.build",
    "benchmark.runs.collect",
)


def import_verbs() -> None:
    """Import the verbs, which enter the command line."""
    from benchmark import cli

    for module in pkgutil.iter_modules(cli.__path__):
        importlib.import_module(f"benchmark.cli.{module.name}")


def import_for_steps() -> None:
    """Import what makes statistics, verdicts, tables, figures and the report."""
    for name in FOR_STEPS:
        importlib.import_module(name)
