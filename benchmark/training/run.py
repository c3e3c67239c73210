"""One run from its specification to its result: what ``python -m benchmark train`` does."""

from __future__ import annotations

import time
from pathlib import Path

from benchmark.core.errors import RunError
from benchmark.core.query_scores import write_query_scores
from benchmark.core.records import NEIGHBOURS, QUERIES, RESULT, RunSpec
from benchmark.core.results import Result, StaleError, read_own_result
from benchmark.training.checkpoint import remove_checkpoint
from benchmark.training.components import build_components
from benchmark.training.interrupt import Interrupted, StopRequest
from benchmark.training.loop import Evaluated, Trainer, write_metrics
from benchmark.training.mirror import Mirror
from benchmark.training.numerics import prepare_numerics
from benchmark.training.outcome import write_neighbours, write_outcome
from benchmark.training.progress import Progress
from benchmark.training.step import DivergedError


def train(spec_path: Path, out: Path | None = None, *, started: float | None = None) -> Result:
    """Return the result of the run described by ``spec_path``, after writing it into ``out``.

    out         folder of the results; by default the folder of the specification
    started     time.monotonic() at the start of the process, for the start-up time on record

    A finished result of the same specification is returned as it is. A checkpoint of the same
    specification, code version, data and platform is continued. A run whose loss or embeddings
    become non-finite ends with status ``diverged``. On a signal to stop the state is saved and
    ``Interrupted`` raised.
    """
    started = time.monotonic() if started is None else started
    spec = RunSpec.read(spec_path)
    folder = Path(out) if out is not None else Path(spec_path).parent
    progress = Progress(spec.run_id, spec.recipe.training.epochs)
    finished = _finished_result(folder, spec)
    if finished is not None:
        progress.say("already finished; delete result.json to train again")
        remove_checkpoint(folder)  # the last thing that a run does: it may have been kept from it
        return finished
    with StopRequest() as stop:

        def report(text: str) -> None:
            progress.say(text)
            if stop.requested:
                raise Interrupted("stopped on request; finished features are kept")

        device = prepare_numerics(spec.recipe.training)
        components = build_components(spec, device, report)
        startup = time.monotonic() - started
        trainer = Trainer(components, folder, progress)
        with Mirror.start(spec, folder):
            reason, last = "", None
            try:
                last = trainer.run(stop)
            except DivergedError as error:
                reason = str(error)
                progress.say(f"diverged: {reason}")
            finally:
                progress.close()
            result = _write(trainer, last, startup, reason)
        remove_checkpoint(folder)
    return result


def _write(trainer: Trainer, last: Evaluated | None, startup: float, reason: str) -> Result:
    """Write everything that a run leaves; return its result."""
    folder, components, state = trainer.folder, trainer.components, trainer.state
    write_metrics(folder, state.records)
    if last is None:
        for name in (NEIGHBOURS, QUERIES):  # of an earlier specification
            (folder / name).unlink(missing_ok=True)
    else:
        digest = components.spec.digest
        write_neighbours(folder, digest, components.recipe.evaluation, last.embedded)
        write_query_scores(folder, digest, last.measured.queries)
    timing = state.timing(startup, trainer.total_seconds())
    return write_outcome(folder, components, state, timing, reason)


def _finished_result(folder: Path, spec: RunSpec) -> Result | None:
    """Return the result that is already there, or None for none and for a damaged one.

    Raise RunError for one of another specification, which is never overwritten.
    """
    path = folder / RESULT
    if not path.exists():
        return None
    try:
        return read_own_result(path, spec.digest)
    except StaleError as error:
        raise RunError(f"{error}; move it away, or give another folder with --out") from error
    except RunError:
        return None
