"""The training loop of one run: epochs, evaluations, checkpoints; resumable after any step."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import torch

from benchmark.core import provenance
from benchmark.core.errors import RunError
from benchmark.core.files import require_folder
from benchmark.core.records import METRICS
from benchmark.core.results import EpochRecord, Scores
from benchmark.training.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint
from benchmark.training.interrupt import Interrupted, StopRequest
from benchmark.training.memory import Memory
from benchmark.training.numerics import grad_scaler
from benchmark.training.optimizer import create_optimizer, set_learning_rate
from benchmark.training.parts import Parts
from benchmark.training.progress import Progress
from benchmark.training.schedule import learning_rate_factor
from benchmark.training.state import RunState
from benchmark.training.step import DivergedError, Stepper

DRAIN_EVERY = 20  # steps between two looks at the losses: one device transfer for all of them


class Trainer:
    """Trains one run in its folder, from the beginning or from its checkpoint."""

    def __init__(self, parts: Parts, folder: Path, identity: dict[str, str], progress: Progress):
        self.parts, self.folder, self.identity, self.progress = parts, folder, identity, progress
        self.epochs = parts.training.epochs
        self.state = RunState(machines=[machine()], package_digests=[provenance.packages_digest()])
        self.optimizer = create_optimizer(parts.optimizer, parts.model, parts.loss)
        memory = None
        if parts.memory.size is not None:
            memory = Memory(parts.memory, parts.labels, parts.model.embedding_dim, parts.device)
        self.stepper = Stepper(
            parts.model,
            parts.loss,
            self.optimizer,
            grad_scaler(parts.training, parts.device),
            parts.training,
            parts.device,
            parts.spec.seed,
            memory,
        )
        self._started = self._saved = time.perf_counter()

    def run(self, stop: StopRequest) -> dict[str, Any]:
        """Trains to the end; returns the last embeddings per protocol. Raises DivergedError, Interrupted."""
        self._resume()
        embedded: dict[str, Any] = {}
        while self.state.epoch < self.epochs:
            rate = self._train_epoch(stop)
            last = self.state.epoch + 1 == self.epochs
            if last or (self.state.epoch + 1) % self.parts.evaluation.every == 0:
                embedded, scores = self._evaluate()
            else:
                scores = None
            self._finish_epoch(rate, scores)
        return embedded or self.parts.evaluator.embed(self.parts.model, self.parts.device)

    def _train_epoch(self, stop: StopRequest) -> float:
        state, parts = self.state, self.parts
        batches = parts.sampler.epoch(state.epoch)
        self.progress.start_epoch(state.epoch, len(batches), state.position)
        parts.model.train()
        clock = time.perf_counter()
        stream = parts.train_input.train_batches(
            batches, parts.spec.seed, state.epoch, start=state.position
        )
        for images in stream:
            indices = batches[state.position]
            state.hash_batch(indices, images)
            share = state.position / len(batches)
            set_learning_rate(self.optimizer, self._rate(share))
            remembers = (
                self.stepper.memory is not None and state.epoch + share >= parts.memory.start_epoch
            )
            labels = parts.labels[torch.from_numpy(indices)]
            self.stepper(images, labels, state.step, indices if remembers else None)
            state.step += 1
            state.position += 1
            state.epoch_images += len(indices)
            now = time.perf_counter()
            state.epoch_seconds += now - clock
            clock = now
            self.progress.step()
            if state.step % DRAIN_EVERY == 0:
                self._drain()
                self._check_losses()
            if stop.requested:
                self._checkpoint()
                raise Interrupted(
                    f"stopped on request at epoch {state.epoch + 1}, step {state.position}"
                )
            if now - self._saved >= parts.training.checkpoint_seconds:
                self._checkpoint()
                clock = time.perf_counter()
        self._drain()
        self._check_losses()
        return self._rate((len(batches) - 1) / len(batches))

    def _rate(self, share: float) -> float:
        """Returns the learning rate of the backbone at ``share`` of the epoch under way."""
        factor = learning_rate_factor(self.parts.schedule, self.state.epoch, share, self.epochs)
        return self.parts.optimizer.lr * factor

    def _drain(self) -> None:
        """Takes over the losses of the last steps."""
        self.state.losses += self.stepper.drain()
        self.state.epoch_loss_seconds += self.stepper.stopwatch.drain()

    def _check_losses(self) -> None:
        """Ends the run at its first loss that is no number: at steps that no clock and no interruption chooses,
        so that the result of a diverged run is the same bits, too."""
        for place, value in enumerate(self.state.losses, 1):
            if not math.isfinite(value):
                raise DivergedError(
                    f"loss became {value} at epoch {self.state.epoch + 1}, step {place} of it"
                )

    def _evaluate(self) -> tuple[dict[str, Any], Scores]:
        started = time.perf_counter()
        embedded = self.parts.evaluator.embed(self.parts.model, self.parts.device)
        for split, item in embedded.items():
            if not item.finite:
                raise DivergedError(
                    f"embeddings of {split} are not finite after epoch {self.state.epoch + 1}"
                )
        scores = self.parts.evaluator.measure(embedded, self.parts.device)
        self.state.eval_seconds += time.perf_counter() - started
        return embedded, scores

    def _finish_epoch(self, rate: float, scores: Scores | None) -> None:
        state = self.state
        state.train_seconds += state.epoch_seconds
        record = state.finish_epoch(rate, scores)
        write_metrics(self.folder, state.records)
        spent = state.train_seconds + state.eval_seconds
        self.progress.finish_epoch(record, spent / state.epoch * (self.epochs - state.epoch))
        if time.perf_counter() - self._saved >= self.parts.training.checkpoint_seconds:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._drain()
        now = time.perf_counter()
        self.state.total_seconds += now - self._started
        self._started = now
        content = {
            "model": self.parts.model.state_dict(),
            "loss": self.parts.loss.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.stepper.scaler.state_dict(),
            "memory": None if self.stepper.memory is None else self.stepper.memory.state_dict(),
            **self.state.as_dict(),
        }
        save_checkpoint(self.folder, self.identity, content)
        self._saved = time.perf_counter()

    def _resume(self) -> None:
        content, message = load_checkpoint(self.folder, self.identity)
        if message:
            self.progress.say(message)
        if content is None:
            return
        try:
            self._take_over(content)
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            raise RunError(
                f"{self.folder / CHECKPOINT} names this run but does not fit it ({error}); "
                "delete it and start the same command again"
            ) from error

    def _take_over(self, content: dict[str, Any]) -> None:
        """Puts everything where ``_checkpoint`` found it."""
        self.parts.model.load_state_dict(content.pop("model"))
        self.parts.loss.load_state_dict(content.pop("loss"))
        self.optimizer.load_state_dict(content.pop("optimizer"))
        self.stepper.scaler.load_state_dict(content.pop("scaler"))
        memory = content.pop("memory")
        if self.stepper.memory is not None:
            self.stepper.memory.load_state_dict(memory)
        self.state = self.state.continuing(RunState.from_dict(content))

    def total_seconds(self) -> float:
        """Returns the seconds spent on this run in all its attempts that left a checkpoint, and this one."""
        return self.state.total_seconds + time.perf_counter() - self._started


def write_metrics(folder: Path, records: list[EpochRecord]) -> None:
    """Writes metrics.jsonl anew: one line per finished epoch."""
    require_folder(folder)
    EpochRecord.write_all(folder / METRICS, records)


def machine() -> str:
    """Returns the models of this machine's processor, with the vector instructions in use, and of its GPUs: what the
    last bits of a number may depend on."""
    found = provenance.hardware()
    return ", ".join([f"{found.cpu} ({provenance.instructions()})", *found.gpus])
