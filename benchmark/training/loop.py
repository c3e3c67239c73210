"""The training loop of one run: epochs, evaluations, checkpoints; resumable after any step."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.core import provenance
from benchmark.core.errors import RunError, printable
from benchmark.core.files import require_folder
from benchmark.core.records import METRICS
from benchmark.core.results import EpochRecord, Scores
from benchmark.training.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint
from benchmark.training.components import Components
from benchmark.training.interrupt import Interrupted, StopRequest
from benchmark.training.measure import EmbeddedProtocol, Measured
from benchmark.training.mining import mine
from benchmark.training.optimizer import set_learning_rate
from benchmark.training.progress import Progress
from benchmark.training.schedule import learning_rate_factor
from benchmark.training.sound_state import place_problems
from benchmark.training.state import RunState
from benchmark.training.step import DivergedError, Stepper

DRAIN_EVERY = 20  # steps between two looks at the losses: one device transfer for all of them


@dataclass(frozen=True)
class Evaluated:
    """The embeddings of an evaluation, and what was measured on them."""

    embedded: dict[str, EmbeddedProtocol]
    measured: Measured


class Trainer:
    """Trains one run in its folder, from the beginning or from its checkpoint."""

    def __init__(self, components: Components, folder: Path, progress: Progress):
        self.components, self.folder, self.progress = components, folder, progress
        self.recipe, self.identity = components.recipe, components.identity()
        self.processes = components.processes
        self.epochs = self.recipe.training.epochs
        self.state = RunState(
            machines=[machine(self.processes.count)],
            package_digests=[provenance.packages_digest()],
        )
        self.stepper = Stepper.create(components)
        self._started = self._saved = time.perf_counter()

    def run(self, stop: StopRequest) -> Evaluated:
        """Train to the end; return the last evaluation. Raise DivergedError or Interrupted.

        Without epochs the network is evaluated as it starts.
        """
        if not self.epochs:
            last = self._evaluate()
            record = self.state.before_training(last.measured.scores)
            self.progress.finish_epoch(record, 0.0)
            return last
        self._resume()
        evaluated: Evaluated | None = None
        while self.state.epoch < self.epochs:
            rate = self._train_epoch(stop)
            scores: Scores | None = None
            done = self.state.epoch + 1
            if done == self.epochs or done % self.recipe.evaluation.every == 0:
                evaluated = self._evaluate()
                scores = evaluated.measured.scores
            self._finish_epoch(rate, scores)
        return evaluated or self._evaluate()

    def _train_epoch(self, stop: StopRequest) -> float:
        """Take the steps that are left of the epoch; return its last learning rate."""
        state, components, stepper = self.state, self.components, self.stepper
        batches = self._batches()
        if state.position > len(batches):
            words = f"step {state.position} of an epoch of {len(batches)}"
            raise RunError(f"{self.folder / CHECKPOINT} continues at {words}; delete it")
        self.progress.start_epoch(state.epoch, len(batches), state.position)
        components.model.train()
        clock = time.perf_counter()
        stream = components.train_input.train_batches(
            batches,
            components.spec.seed_of("augmentation"),
            state.epoch,
            start=state.position,
            share=self.processes.rows,
        )
        for images in stream:
            indices = batches[state.position]
            if state.hashes_batch:
                whole = self.processes.collected(images, self.processes.shares(len(indices)))
                state.hash_batch(indices, whole)
            share = state.position / len(batches)
            set_learning_rate(stepper.optimizer, self._rate(share))
            started = state.epoch + share >= self.recipe.memory.start_epoch
            takes_part = started or self.recipe.memory.write_first
            remembered = indices if stepper.memory is not None and takes_part else None
            labels = components.labels[torch.from_numpy(indices)]
            stepper(images, labels, state.step, remembered, reads=started)
            now = time.perf_counter()
            state.count_step(len(indices), now - clock, stepper.passes(len(images)))
            clock = now
            self.progress.step()
            if state.step % DRAIN_EVERY == 0:
                self._check_losses()
            if self.processes.any(stop.requested):
                self._checkpoint()
                raise Interrupted(
                    f"stopped on request at epoch {state.epoch + 1}, step {state.position}"
                )
            if now - self._saved >= self.recipe.training.checkpoint_seconds:
                self._checkpoint()
                clock = time.perf_counter()
        self._check_losses()
        return self._rate((len(batches) - 1) / len(batches))

    def _batches(self) -> list[np.ndarray]:
        """Return the batches of the epoch; mined ones are kept, as the network moves on."""
        state = self.state
        if state.mined:
            return [np.array(batch) for batch in state.mined]
        clock = time.perf_counter()
        # each process mines, and the last bits of one decide for all
        batches, embedded = self.processes.told(mine(self.components, state.epoch))
        if embedded:
            state.count_mining(batches, embedded, time.perf_counter() - clock)
        return batches

    def _rate(self, share: float) -> float:
        """Return the learning rate of the backbone at ``share`` of the epoch under way."""
        factor = learning_rate_factor(self.recipe.schedule, self.state.epoch, share, self.epochs)
        return self.recipe.optimizer.lr * factor

    def _drain(self) -> None:
        """Take over the losses of the last steps."""
        self.state.losses += self.stepper.drain()
        self.state.epoch_loss_seconds += self.stepper.stopwatch.drain()

    def _check_losses(self) -> None:
        """End the run at its first non-finite loss.

        That is looked for at steps that no clock and no interruption chooses, so that the result of
        a diverged run is the same bits, too.
        """
        self._drain()
        for step, value in enumerate(self.state.losses, 1):
            if not math.isfinite(value):
                where = f"epoch {self.state.epoch + 1}, step {step} of it"
                raise DivergedError(f"loss became {value} at {where}")

    def _evaluate(self) -> Evaluated:
        started, components = time.perf_counter(), self.components
        embedded = components.evaluator.embed(components.model, components.device)
        # the main process has more splits than the others, which measure with it or not at all
        broken = self.processes.told([key for key, item in embedded.items() if not item.finite])
        if broken:
            done = min(self.state.epoch + 1, self.epochs)
            where = f"of {broken[0]} are not finite after epoch {done}"
            raise DivergedError(f"embeddings {where}")
        measured = components.evaluator.measure(embedded, components.device)
        scores = self.processes.told(measured.scores)
        self.state.eval_seconds += time.perf_counter() - started
        return Evaluated(embedded, Measured(scores, measured.queries))

    def _finish_epoch(self, rate: float, scores: Scores | None) -> None:
        state = self.state
        record = state.finish_epoch(rate, scores)
        if self.processes.main:
            write_metrics(self.folder, state.records)
        spent = state.train_seconds + state.eval_seconds
        self.progress.finish_epoch(record, spent / state.epoch * (self.epochs - state.epoch))
        if time.perf_counter() - self._saved >= self.recipe.training.checkpoint_seconds:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._drain()
        now = time.perf_counter()
        self.state.total_seconds += now - self._started
        self._started = now
        if self.processes.main:  # all others have the same
            content = {**self.stepper.state_dict(), **self.state.as_dict()}
            save_checkpoint(self.folder, self.identity, content)
        self._saved = time.perf_counter()

    def _resume(self) -> None:
        content, message = load_checkpoint(self.folder, self.identity)
        self._read_alike(content)
        if message:
            self.progress.say(message)
        if content is None:
            return
        try:
            self.stepper.load_state_dict(content)
            self.state = self.state.continuing(RunState.from_dict(content))
            for problem in place_problems(self.state, self.recipe, self.components.sampler):
                raise ValueError(problem)
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            words = printable(str(error))[:500]
            raise RunError(
                f"{self.folder / CHECKPOINT} names this run but does not fit it ({words}); "
                "delete it and start the same command again"
            ) from error

    def _read_alike(self, content: dict[str, Any] | None) -> None:
        """Raise RunError when another process than the main one sees another checkpoint."""
        place = None if content is None else (content.get("epoch"), content.get("position"))
        if self.processes.told(place) != place:
            raise RunError(
                f"the processes read different states in {self.folder / CHECKPOINT}; is the folder "
                "on a file system that all of them see? Start the same command again"
            )

    def total_seconds(self) -> float:
        """Return the seconds of this attempt and of all earlier ones that left a checkpoint."""
        return self.state.total_seconds + time.perf_counter() - self._started


def write_metrics(folder: Path, records: list[EpochRecord]) -> None:
    """Write metrics.jsonl anew: one line per finished epoch."""
    require_folder(folder)
    EpochRecord.write_all(folder / METRICS, records)


def machine(processes: int = 1) -> str:
    """Return the models of processor and GPUs, on which the last bits of a number may depend.

    So may the number of processes that trained together, which is named if there are several.
    """
    hardware = provenance.hardware()
    together = [f"{processes} processes"] if processes > 1 else []
    return ", ".join([f"{hardware.cpu} ({provenance.instructions()})", *hardware.gpus, *together])
