"""Snakemake's ``--logger runs``: what a person wants to see of a study that is being trained.

On a terminal one live line: runs done, running, left, and the time left. In a log one line for
each finished run, with its score. Both print failures and warnings as they happen, and nothing
else. Snakemake's own words are in its log file, ``.snakemake/log``; a dry run, ``--verbose``,
``--quiet`` and ``--printshellcmds`` print them here as well.

The Snakefile talks to this handler through log records with two extra attributes: ``study``
(a ``StudyFacts``) before anything starts, and ``closing`` (True) on the last words.
"""

from __future__ import annotations

import os
import sys
from logging import WARNING, LogRecord
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_runs.display import Lines, LiveLine
from snakemake_logger_plugin_runs.inside import (
    LOCKED,
    LOCKS,
    NOISE,
    NOTHING_TO_DO,
    REPEATED,
    STOPPING,
    own_words,
)
from snakemake_logger_plugin_runs.progress import Progress, Run, StudyFacts, reason_of

__all__ = ["LogHandler", "StudyFacts"]

TRAIN = "train"  # the rule whose jobs are runs


class LogHandler(LogHandlerBase):
    """Turns Snakemake's log records into ``Lines`` or a ``LiveLine``."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        asked = self.common_settings
        wanted = (asked.dryrun, asked.verbose, asked.quiet, asked.printshellcmds, asked.debug_dag)
        self._plain = own_words(asked) if any(wanted) else None
        live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._display = LiveLine() if live else Lines()
        self._progress = Progress()
        self._started = self._stopping = False

    def emit(self, record: LogRecord) -> None:
        """Show a record, or what it changes."""
        try:
            if self._plain is not None:
                self._plain.handle(record)
            else:
                self._show(record)
        except Exception:  # a broken display must not end a study
            self.handleError(record)

    def close(self) -> None:
        """Leave the terminal clean."""
        self._display.stop()
        super().close()

    def _show(self, record: LogRecord) -> None:
        facts: dict[str, Any] = record.__dict__
        event = facts.get("event")
        if "study" in facts:
            self._progress.study = facts["study"]
        elif facts.get("closing"):
            self._display.stop()
            self._display.say(record.getMessage())
        elif event == LogEvent.WORKFLOW_STARTED:
            self._started = True
        elif event == LogEvent.RUN_INFO:
            self._progress.begin(facts["stats"].get(TRAIN, 0))
            self._display.update(self._progress)
        elif event == LogEvent.JOB_INFO:
            if facts["rule_name"] == TRAIN:
                path = Path(facts["output"][0])
                self._progress.running[facts["jobid"]] = Run(facts["wildcards"]["run"], path)
            elif facts["shellcmd"]:
                self._progress.step = facts["rule_name"]
            self._display.update(self._progress)
        elif event == LogEvent.JOB_FINISHED:
            if (run := self._progress.finish_run(facts["job_id"])) is not None:
                self._display.finished(self._progress.describe(run))
                self._display.update(self._progress)
        elif event == LogEvent.JOB_ERROR:
            self._job_failed(facts)
        elif event is None or event == LogEvent.ERROR:
            self._message(record)

    def _job_failed(self, facts: dict[str, Any]) -> None:
        run = self._progress.fail_run(facts["jobid"])
        if self._stopping:
            return  # it has saved its state, or was no run
        name = run.name if run else facts["rule_name"]
        reason = reason_of(facts["log"], facts["rule_msg"])
        self._display.say(f"failed: {name}: {reason}")
        self._display.update(self._progress)

    def _message(self, record: LogRecord) -> None:
        message = record.getMessage()
        error = getattr(record, "exception", "")
        if self._stopping or message.startswith(NOISE) or error in REPEATED:
            pass
        elif error == LOCKED:
            self._display.say(
                "error: another workflow runs here with the same files; give the command again "
                f"when it has ended (if none runs, one was killed: 'rm -r {LOCKS}' first)"
            )
        elif message.startswith(STOPPING):
            self._stopping = True
            self._display.stop()
            self._display.say(
                "stopping: no more runs are started, those under way finish or save their state"
            )
        elif message.startswith(NOTHING_TO_DO):
            if study := self._progress.study:
                message += f"\n{study.last_words(True)}"
            self._display.say(message)
        elif record.levelno >= WARNING or not self._started:
            self._display.say(message)
