"""The training loop of one run: epochs, evaluations, checkpoints; resumable after any step."""

import math
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from benchmark.core import provenance
from benchmark.core.interrupts import Interrupted, StopRequest
from benchmark.core.records import METRICS
from benchmark.core.results import EpochRecord
from benchmark.input.tensors import create_input
from benchmark.training.components import Components
from benchmark.training.evaluate import Evaluation, embed_images, measure
from benchmark.training.numerics import (
    create_optimizer,
    grad_scaler,
    learning_rate_factor,
    set_learning_rate,
)
from benchmark.training.progress import Progress
from benchmark.training.state import RunState, load_checkpoint, save_checkpoint
from benchmark.training.step import DivergedError, Memory, Stepper

DRAIN_EVERY = 20  # steps whose losses are read in one transfer from the device


class Trainer:
    """Trains one run in its folder, from the beginning or from its checkpoint."""

    def __init__(self, components: Components, folder: Path, progress: Progress):
        self.components = components
        self.folder = folder
        self.progress = progress
        self.recipe = components.recipe
        self.identity = components.identity()
        self.epochs = self.recipe.training.epochs
        self.state = RunState(machines=[machine()], package_digests=[provenance.packages_digest()])
        model = components.model
        loss = components.loss
        device = components.device
        memory = None
        if self.recipe.memory.size is not None:
            dtype = next(model.parameters()).dtype
            labels = components.labels
            width = model.embedding_dim
            memory = Memory(self.recipe.memory, labels, width, device, dtype)
        optimizer = create_optimizer(self.recipe.optimizer, model, loss)
        scaler = grad_scaler(self.recipe.training, device)
        settings = self.recipe.training
        seed = components.spec.seed
        self.normalised = components.train_input.normalised
        self.stepper = Stepper(
            model, loss, optimizer, scaler, settings, device, seed, memory, self.normalised
        )
        self._started = self._saved = time.perf_counter()

    def run(self, stop: StopRequest) -> Evaluation:
        """Train to the end; return the last evaluation. Raise DivergedError or Interrupted.

        Without epochs the initial network is evaluated.
        """
        if not self.epochs:
            first = self._evaluate()
            self.progress.finish_epoch(self.state.before_training(first.scores), 0.0)
            return first
        content, message = load_checkpoint(self.folder, self.identity)
        if message:
            self.progress.say(message)
        if content is not None:
            self.stepper.load_state_dict(content)
            self.state = self.state.continued(content)
        last: Evaluation | None = None
        state = self.state
        while state.epoch < self.epochs:
            rate = self._train_epoch(stop)
            done = state.epoch + 1
            due = done == self.epochs or done % self.recipe.evaluation.every == 0
            last = None
            scores = None
            if due:
                with stop.answered_by(self._checkpoint):  # an evaluation may take hours
                    last = self._evaluate()
                scores = last.scores
            record = state.finish_epoch(rate, scores)
            EpochRecord.write_all(self.folder / METRICS, state.records)
            spent = state.train_seconds + state.eval_seconds
            self.progress.finish_epoch(record, spent / state.epoch * (self.epochs - state.epoch))
            self._save_if_due(stop)
        return last or self._evaluate()

    def _train_epoch(self, stop: StopRequest) -> float:
        """Take the remaining steps of the epoch; return its last learning rate."""
        state = self.state
        components = self.components
        stepper = self.stepper
        clock = time.perf_counter()
        batches = [np.array(batch) for batch in state.mined]
        embedded = 0
        if not batches:
            with stop.answered_by(self._checkpoint):
                batches, embedded = batches_of(components, state.epoch)
        if embedded:  # a resumed run cannot mine the same batches with a later network
            state.mined = [batch.tolist() for batch in batches]
            state.images_forward += embedded
            state.epoch_seconds += time.perf_counter() - clock
        self.progress.start_epoch(state.epoch, len(batches), state.position)
        components.model.train()
        clock = time.perf_counter()
        stream = components.train_input.train_batches(
            batches, components.spec.seed_of("augmentation"), state.epoch, start=state.position
        )
        for images in stream:
            indices = batches[state.position]
            state.hash_batch(indices, images, self.normalised)
            share = state.position / len(batches)
            set_learning_rate(stepper.optimizer, self._rate(share))
            started = state.epoch + share >= self.recipe.memory.start_epoch
            labels = components.labels[torch.from_numpy(indices)]
            try:
                stepper(images, labels, state.step, indices, reads=started)
            except DivergedError as error:
                # a loss that was not read yet may be the first that is not finite
                self._check_losses()
                raise DivergedError(f"{error} at {self._step_text(state.position + 1)}") from error
            now = time.perf_counter()
            state.count_step(len(indices), now - clock, stepper.passes(len(images)))
            self.progress.step()
            if state.step % DRAIN_EVERY == 0:
                self._check_losses()
            self._save_if_due(stop)
            clock = max(now, self._saved)
        self._check_losses()
        if stepper.recorder is not None:
            stepper.recorder.close()
        return self._rate((len(batches) - 1) / len(batches))

    def _rate(self, share: float) -> float:
        """Return the learning rate of the backbone at ``share`` of the present epoch."""
        factor = learning_rate_factor(self.recipe.schedule, self.state.epoch, share, self.epochs)
        return self.recipe.optimizer.lr * factor

    def _drain(self) -> None:
        """Read the losses of the last steps."""
        self.state.losses += self.stepper.drain()
        self.state.epoch_loss_seconds += self.stepper.stopwatch.drain()

    def _check_losses(self) -> None:
        """Raise DivergedError for the first loss that is not finite.

        Neither the clock nor an interruption chooses the steps of this check, so that the result of
        a diverged run has the same bits, too.
        """
        self._drain()
        for step, value in enumerate(self.state.losses, 1):
            if not math.isfinite(value):
                raise DivergedError(f"loss became {value} at {self._step_text(step)}")

    def _step_text(self, step: int) -> str:
        return f"epoch {self.state.epoch + 1}, step {step} of it"

    def _evaluate(self) -> Evaluation:
        started = time.perf_counter()
        components = self.components
        embedded = components.evaluator.embed(components.model, components.device)
        broken = [key for key, item in embedded.items() if not item.finite]
        if broken:
            done = min(self.state.epoch + 1, self.epochs)
            raise DivergedError(f"embeddings of {broken[0]} are not finite after epoch {done}")
        evaluation = measure(embedded, self.recipe.evaluation, components.device)
        self.state.eval_seconds += time.perf_counter() - started
        return evaluation

    def _save_if_due(self, stop: StopRequest) -> None:
        """Save the state if it is time; on request save it and raise Interrupted.

        A run with all its epochs is not stopped, because it ends in seconds.
        """
        state = self.state
        if stop.requested and state.epoch < self.epochs:
            self._checkpoint()
            raise Interrupted(
                f"stopped on request at epoch {state.epoch + 1}, step {state.position}"
            )
        if time.perf_counter() - self._saved >= self.recipe.training.checkpoint_seconds:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._drain()
        now = time.perf_counter()
        self.state.total_seconds += now - self._started
        self._started = now
        content = {**self.stepper.state_dict(), **asdict(self.state)}
        save_checkpoint(self.folder, self.identity, content)
        self._saved = time.perf_counter()

    def total_seconds(self) -> float:
        """Return the seconds of this attempt and of earlier attempts that saved a checkpoint."""
        return self.state.total_seconds + time.perf_counter() - self._started


def batches_of(components: Components, epoch: int) -> tuple[list[np.ndarray], int]:
    """Return the batches of ``epoch`` (from 0), and the number of images embedded to mine them.

    The images of the pool are embedded like test images.
    """
    sampler = components.sampler
    recipe = components.recipe
    if not sampler.pooled:
        return sampler.epoch(epoch), 0
    pool = components.dataset.train.part(sampler.pool(epoch))
    images = create_input(pool, recipe.input, recipe.model.channels, components.device)
    size = recipe.evaluation.batch_size
    rows = embed_images(components.model, images, len(pool), size, components.device)
    return sampler.mined(epoch, rows), len(pool)


def machine() -> str:
    """Return the models of processor and GPUs, on which the last bits of a number may depend."""
    hardware = provenance.hardware()
    return ", ".join([f"{hardware.cpu} ({provenance.kernels()})", *hardware.gpus])
