"""Start the processes that train one run together, by torchrun's own machinery, and end them all.

Each is ``python -m benchmark train`` with torchrun's variables (RANK, WORLD_SIZE, ...), so that
``torchrun --nproc-per-node 4 -m benchmark train --spec ...`` does the same.
"""

import ctypes
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from benchmark.core.faults import end_with
from benchmark.core.gpus import take_gpus
from benchmark.core.plain import whole_number
from benchmark.training.interrupt import EXIT_INTERRUPTED

# The file that the first process to fail makes: it is the one that says why.
FIRST_ERROR = "RUN_FIRST_ERROR"
# The process that starts the others: one whose parent it no longer is has been left alone.
LAUNCHER = "RUN_LAUNCHER"
EXIT_SILENT = 1
# Seconds that processes have to save the state after a signal; shorter than a cluster's warning.
SAVING_SECONDS = "60"
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl


def launch(arguments: list[str], count: int) -> int:
    """Run ``python -m benchmark`` with ``arguments`` in ``count`` processes; return the status.

    That is 0, 75 when they were stopped and saved their state, else that of the first failure;
    128 + n stands for signal n. When one ends, all end. Raise RunError for more processes than
    the machine has GPUs for, or than it can bear without any.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from benchmark.training.processes import require_gpus

    take_gpus(count)
    require_gpus(count)
    # what there is to say on a failure is said by the process that failed
    logging.disable()
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", SAVING_SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FIRST_ERROR] = str(Path(folder, "first-error"))
        os.environ[LAUNCHER] = str(os.getpid())
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=count,
            run_id=Path(folder).name,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=folder),
        )
        try:
            elastic_launch(config, sys.executable)("-u", "-m", "benchmark", *arguments)
        except ChildFailedError as error:
            codes = [failure.exitcode for failure in error.failures.values()]
            status = status_of(codes)
            if not Path(os.environ[FIRST_ERROR]).exists() and status != EXIT_INTERRUPTED:
                print(f"one of {count} processes ended with status {status}, so all were ended")
                print("the same command continues from the last checkpoint", flush=True)
            return status
        except SignalException:
            return EXIT_INTERRUPTED
    return 0


def status_of(codes: Collection[int]) -> int:
    """Return the status of a run whose processes failed with these; -n is signal n.

    A process that was asked to end because of another counts last.
    """
    if EXIT_INTERRUPTED in codes:
        return EXIT_INTERRUPTED
    order = sorted(codes, key=lambda code: (code == -signal.SIGTERM, code == EXIT_SILENT, code))
    return 128 - order[0] if order[0] < 0 else order[0]


def take_part(train: Callable[[], int]) -> int:
    """Return the exit status of ``train``; of several failing processes one says why.

    The process ends when the one that started it does.
    """
    # torchrun gives no such number
    die_with_parent(signal.SIGTERM, whole_number(os.environ.get(LAUNCHER, "")))
    try:
        return train()
    except Exception as error:
        from benchmark.training.processes import PeerGoneError

        if isinstance(error, PeerGoneError) or not _is_first():
            return EXIT_SILENT
        # The launcher ends all when one has ended, maybe before this one has said why.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return end_with(error)


def die_with_parent(number: int, parent: int | None) -> None:
    """Ask for a signal when the process ends that started this one.

    ``parent`` is the number of that process, where it is known: one that ended before this was
    asked sends nothing any more, so that the signal is sent here.
    """
    with suppress(AttributeError, OSError):  # Linux alone has it
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, number)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), number)


def _is_first() -> bool:
    """Whether no other process has failed; without a launcher each speaks for itself."""
    path = os.environ.get(FIRST_ERROR)
    if path is None:
        return True
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        return True
    return False
