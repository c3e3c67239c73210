"""The training loop of one run: epochs, evaluations, checkpoints; resumable after any step."""

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from benchmark.core import provenance
from benchmark.core.interrupts import Interrupted, StopRequest
from benchmark.core.records import METRICS
from benchmark.core.results import EpochRecord, Scores
from benchmark.input.tensors import create_input
from benchmark.training.components import Components
from benchmark.training.evaluate import EmbeddedProtocol, Measured, embed_images
from benchmark.training.numerics import learning_rate_factor, set_learning_rate
from benchmark.training.progress import Progress
from benchmark.training.state import RunState, load_checkpoint, save_checkpoint
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
        self.epochs = self.recipe.training.epochs
        self.state = RunState(machines=[machine()], package_digests=[provenance.packages_digest()])
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
        content, message = load_checkpoint(self.folder, self.identity)
        if message:
            self.progress.say(message)
        if content is not None:
            self.stepper.load_state_dict(content)
            self.state = self.state.continuing(RunState.from_dict(content))
        evaluated: Evaluated | None = None
        while self.state.epoch < self.epochs:
            rate = self._train_epoch(stop)
            scores: Scores | None = None
            done = self.state.epoch + 1
            if done == self.epochs or done % self.recipe.evaluation.every == 0:
                evaluated = self._evaluate()
                scores = evaluated.measured.scores
            state = self.state
            record = state.finish_epoch(rate, scores)
            EpochRecord.write_all(self.folder / METRICS, state.records)
            spent = state.train_seconds + state.eval_seconds
            self.progress.finish_epoch(record, spent / state.epoch * (self.epochs - state.epoch))
            if time.perf_counter() - self._saved >= self.recipe.training.checkpoint_seconds:
                self._checkpoint()
        return evaluated or self._evaluate()

    def _train_epoch(self, stop: StopRequest) -> float:
        """Take the steps that are left of the epoch; return its last learning rate."""
        state, components, stepper = self.state, self.components, self.stepper
        clock = time.perf_counter()
        batches, embedded = [np.array(batch) for batch in state.mined], 0
        if not batches:  # mined ones are kept, as the network moves on
            batches, embedded = batches_of(components, state.epoch)
        if embedded:
            state.count_mining(batches, embedded, time.perf_counter() - clock)
        self.progress.start_epoch(state.epoch, len(batches), state.position)
        components.model.train()
        clock = time.perf_counter()
        stream = components.train_input.train_batches(
            batches, components.spec.seed_of("augmentation"), state.epoch, start=state.position
        )
        for images in stream:
            indices = batches[state.position]
            state.hash_batch(indices, images)
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
            if stop.requested:
                self._checkpoint()
                raise Interrupted(
                    f"stopped on request at epoch {state.epoch + 1}, step {state.position}"
                )
            if now - self._saved >= self.recipe.training.checkpoint_seconds:
                self._checkpoint()
                clock = time.perf_counter()
        self._check_losses()
        return self._rate((len(batches) - 1) / len(batches))

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
        broken = [key for key, item in embedded.items() if not item.finite]
        if broken:
            done = min(self.state.epoch + 1, self.epochs)
            raise DivergedError(f"embeddings of {broken[0]} are not finite after epoch {done}")
        measured = components.evaluator.measure(embedded, components.device)
        self.state.eval_seconds += time.perf_counter() - started
        return Evaluated(embedded, measured)

    def _checkpoint(self) -> None:
        self._drain()
        now = time.perf_counter()
        self.state.total_seconds += now - self._started
        self._started = now
        content = {**self.stepper.state_dict(), **asdict(self.state)}
        save_checkpoint(self.folder, self.identity, content)
        self._saved = time.perf_counter()

    def total_seconds(self) -> float:
        """Return the seconds of this attempt and of all earlier ones that left a checkpoint."""
        return self.state.total_seconds + time.perf_counter() - self._started


def batches_of(components: Components, epoch: int) -> tuple[list[np.ndarray], int]:
    """Return the batches of ``epoch`` (from 0) and how many images were embedded to mine them.

    The images of the pool are seen as test images are, and the network is left in its mode.
    """
    sampler, recipe, model = components.sampler, components.recipe, components.model
    if not sampler.pooled:
        return sampler.epoch(epoch), 0
    pool = components.dataset.train.part(sampler.pool(epoch))
    images = create_input(pool, recipe.input, recipe.model.channels)
    size, training = recipe.evaluation.batch_size, model.training
    model.eval()
    rows = embed_images(model, images, len(pool), size, components.device)
    model.train(training)
    return sampler.mined(epoch, rows), len(pool)


def machine() -> str:
    """Return the models of processor and GPUs, on which the last bits of a number may depend."""
    hardware = provenance.hardware()
    return ", ".join([f"{hardware.cpu} ({provenance.instructions()})", *hardware.gpus])
