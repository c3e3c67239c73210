"""``python -m benchmark conform``: an implementation of a ranking loss against its formula."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmark.cli import app, echo, file_to_write
from benchmark.core.errors import ConfigError, RunError
from benchmark.core.plain import YamlError, parse_yaml

PATIENCE = 5.0  # seconds, with what an implementation leaves running
LONGEST = 900.0  # seconds of all checks: an implementation may loop


class _TooLongError(BaseException):
    """The checks take too long; no check may take it for the implementation's own error."""


@app.command()
def conform(
    candidate: Annotated[
        str, typer.Argument(help="implementation: MODULE:OBJECT, FILE.py:OBJECT or FILE.py")
    ],
    loss: Annotated[str, typer.Option("--as", metavar="LOSS", help="the loss that it is")],
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="hyperparameter of the loss, may be repeated"),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(help="also write the result to this file", callback=file_to_write),
    ] = None,
    processes: Annotated[bool, typer.Option(help="also try two processes that train")] = True,
) -> None:
    """Hold anyone's ranking loss, called with (embeddings, labels), against its formula.

    Values, gradients, invariances, unusual batches and behaviour are checked; a failure shows the
    smallest batch that fails. Exit status 0: no check failed; 1: one did; 2: it could not start.

    Example: python -m benchmark conform pytorch_metric_learning.losses:FastAPLoss --as fast_ap

    Example: python -m benchmark conform my_loss.py --as smooth_ap --option tau=0.05
    """
    options = _parse(option or [])
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler tells of each start
    from benchmark.core.files import write_json
    from benchmark.core.plugin_errors import in_words, line_in
    from benchmark.losses.conformance import verdict

    with _ended_at_last(candidate), _limited():
        try:
            result = verdict.conform(candidate, loss, options, processes=processes, say=echo)
        except Exception:
            raise
        except _TooLongError as error:
            file = f"{Path(candidate.rpartition('.py')[0]).absolute()}.py"
            words = f"{candidate} takes more than {LONGEST:.0f} s to check"
            raise RunError(f"{words}{line_in(file, error)}; does it loop?") from error
        except KeyboardInterrupt as error:
            echo("interrupted: by Ctrl-C, or by the implementation itself", err=True)
            raise typer.Exit(130) from error
        except BaseException as error:  # sys.exit and its like: no check of a loss ends the program
            words = f"{candidate} ended the program ({in_words(error)})"
            raise RunError(f"{words}; a loss returns a number, or raises an Exception") from error
        if json is not None:
            write_json(json, result.as_json())
        if not result.passed:
            raise typer.Exit(1)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise _TooLongError in the block when it takes longer than the longest time."""

    def give_up(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _ended_at_last(candidate: str) -> Iterator[None]:
    """End the process some time after the block, should the implementation keep it running.

    Python waits without end for threads and processes that it started.
    """
    status = 2
    try:
        yield
        status = 0
    except typer.Exit as ended:
        status = ended.exit_code
        raise
    finally:
        left = [each.name for each in threading.enumerate() if not each.daemon]
        left = [*left, *(each.name for each in multiprocessing.active_children())]
        left.remove(threading.main_thread().name)
        if left:
            words = f"{candidate} left running: {', '.join(left)}"
            threading.Thread(target=_end, args=(words, status), daemon=True).start()


def _end(words: str, status: int) -> None:
    """End the process with this status when its main thread has ended and others have not."""
    threading.main_thread().join()
    time.sleep(PATIENCE)
    for child in multiprocessing.active_children():
        child.kill()
    echo(f"{words}; the command ends without waiting any longer", err=True)
    os._exit(status)


def _parse(pairs: list[str]) -> dict[str, Any]:
    """Return KEY=VALUE as a dictionary; values are read as YAML."""
    wrong = [pair for pair in pairs if "=" not in pair or pair.startswith("=")]
    if wrong:
        raise ConfigError("--option", [f"'{pair}' (allowed: KEY=VALUE)" for pair in wrong])
    try:
        return {key: parse_yaml(value)[0] for key, _, value in (p.partition("=") for p in pairs)}
    except YamlError as error:
        raise ConfigError("--option", [f"{error} (allowed: KEY=VALUE)"]) from error
