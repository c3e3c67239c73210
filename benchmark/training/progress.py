"""Progress of a run: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys

from tqdm import tqdm

from benchmark.core.results import EpochRecord

HEADLINES = ("recall_at_1", "map_at_r")  # of what is measured, what a line shows


class Progress:
    """Shows steps on a terminal and one line per epoch everywhere."""

    def __init__(self, title: str, epochs: int):
        self.title = title
        self.epochs = epochs
        self._bar: tqdm | None = None

    def say(self, text: str) -> None:
        """Print one line."""
        tqdm.write(f"{self.title}  {text}", file=sys.stdout)
        sys.stdout.flush()

    def start_epoch(self, epoch: int, steps: int, start: int) -> None:
        """Open the bar of one epoch (from 0), at step ``start`` of ``steps``."""
        if sys.stderr.isatty():
            label = f"epoch {epoch + 1}/{self.epochs}"
            self._bar = tqdm(total=steps, initial=start, desc=label, leave=False, unit="batch")

    def step(self) -> None:
        """Move the bar by one step."""
        if self._bar is not None:
            self._bar.update()

    def close(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def finish_epoch(self, record: EpochRecord, seconds_left: float) -> None:
        """Print the line of a finished epoch."""
        self.close()
        scores = [
            f"{split} {metric} {100 * value:.2f}"
            for split, metrics in (record.evaluation or {}).items()
            for metric, value in metrics.items()
            if metric in HEADLINES
            or not metrics.keys() & set(HEADLINES)  # landmarks are scored by mAP alone
        ]
        if record.loss is None:
            self.say("  ".join(["not trained", *scores]))
            return
        parts = [
            f"epoch {record.epoch}/{self.epochs}",
            f"loss {record.loss:.5f}",
            *scores,
            f"{record.images_per_second:.0f} images/s",
            f"loss {record.loss_ms:.2f} ms/step",
            f"about {seconds_left:.0f} s left",
        ]
        self.say("  ".join(parts))
