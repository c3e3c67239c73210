"""How progress is shown: a live line on a terminal, lines in a log."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task
from rich.progress import Progress as Bar
from rich.text import Text

from benchmark.core.words import rough_duration
from snakemake_logger_plugin_runs.progress import Progress


class Lines:
    """A log: one line for each finished run, and messages."""

    def update(self, progress: Progress) -> None:
        """Show how far the study is; a log keeps no line up to date."""

    def finished(self, line: str) -> None:
        """Show a run that has just finished."""
        self.say(line)

    def say(self, message: str) -> None:
        """Print a message that stays, on the standard error stream, as Snakemake does."""
        print(message, file=sys.stderr, flush=True)

    def stop(self) -> None:
        """End whatever is live; may be called again."""


class Words(ProgressColumn):
    """The words of the live line, which follow the clock."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        super().__init__()

    def render(self, task: Task) -> Text:
        """Return the words as they are now."""
        return Text(line(self._progress), no_wrap=True, overflow="ellipsis")


class LiveLine(Lines):
    """A terminal: one line with a bar, above which messages are printed."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._bar: Bar | None = None
        self._ended = False

    def update(self, progress: Progress) -> None:
        """Move the bar at once; the first call starts it."""
        if self._ended:
            return
        if self._bar is None:
            self._bar = Bar(
                BarColumn(16),
                Words(progress),
                console=self._console,
                transient=True,
                redirect_stdout=False,
                refresh_per_second=2,
            )
            self._task = self._bar.add_task("", total=progress.total)
            self._bar.start()
        self._bar.update(self._task, completed=progress.done, refresh=True)

    def finished(self, line: str) -> None:
        """The live line counts it."""

    def say(self, message: str) -> None:
        """Print the message above the line."""
        self._console.print(message, markup=False, soft_wrap=True)

    def stop(self) -> None:
        """Remove the line for good."""
        self._ended = True
        if self._bar is not None:
            self._bar.stop()


def line(progress: Progress) -> str:
    """Return the text of the live line."""
    facts = [f"{progress.done} of {progress.total} runs done"]
    if progress.failed:
        facts.append(f"{progress.failed} failed")
    if progress.running or progress.left:
        facts += [f"{len(progress.running)} running", f"{progress.left} left"]
        seconds = progress.seconds_left()
        if seconds is not None:
            facts.append(f"about {rough_duration(seconds)} left")
    elif progress.step:
        facts.append(progress.step)
    return ", ".join(facts)
