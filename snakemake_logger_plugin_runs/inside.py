"""All that the suite uses of Snakemake beside what its manual promises.

Read in the sources of 9.27.1 and tested with it; pyproject.toml and the Snakefile ask for
``HOLDS_FOR``. With another version of Snakemake this is the file to look at, and
``tests/workflow`` and ``tests/unit/logger`` are the tests to run. The logger stands on Snakemake's
interface for plugins, but for its formatter and some of its words, which are here, too.
"""

from __future__ import annotations

import atexit
import builtins
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from logging import INFO, LogRecord
from typing import Any

from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

HOLDS_FOR = ">=9.27,<10"

# What Snakemake says of every workflow: the handler says it better, or nobody needs it.
NOISE = (
    "At least one job did not complete successfully",
    "Exiting because a job execution failed",
    "Assuming unrestricted shared filesystem usage",
    "Building DAG of jobs",
    "--keep-incomplete mode is set",
)
NOTHING_TO_DO = "Nothing to be done"
STOPPING = (
    "Terminating processes on user request",
    "Will exit after finishing currently running jobs",
)
# Errors of a job, which has an event of its own.
REPEATED = ("RuleException", "CalledProcessError")
# Snakemake's error for a folder in which another workflow has locked the same files, or had when it
# was killed. It names an option that 'python -m benchmark run' does not have.
LOCKED = "LockException"
LOCKS = ".snakemake/locks"
# More than three files in one line; the reason of a job may have hundreds.
_FILE = r"[^\s,;=/]*/[^\s,;=]*"
_MANY_FILES = re.compile(f"({_FILE})((?:, {_FILE}){{3,}})")


class ShortFormatter(DefaultFormatter):
    """Snakemake's words, in which one of many files stands for all."""

    def format(self, record: LogRecord) -> str:
        """Return the words of a record."""
        return shorten(super().format(record) or "")


def shorten(text: str) -> str:
    """Return the text with the first file of each list of more than three, and their number."""
    return _MANY_FILES.sub(lambda found: f"{found[1]} and {found[2].count(', ')} more", text)


def own_words(settings: Any) -> ColorizingTextHandler:
    """Return the handler with which Snakemake prints its own messages under these settings."""
    stream = sys.stdout if settings.stdout else sys.stderr
    handler = ColorizingTextHandler(
        nocolor=settings.nocolor,
        stream=stream,
        formatter=ShortFormatter(settings.quiet, settings.show_failed_logs),
        filter=DefaultFilter(
            settings.quiet,
            settings.debug_dag,
            settings.verbose,
            settings.dryrun,
            settings.printshellcmds,
        ),
    )
    handler.setLevel(0 if settings.verbose or settings.debug_dag else INFO)
    return handler


class Inside:
    """The object ``workflow`` of a Snakefile: how Snakemake was called, and what it plans."""

    def __init__(self, workflow: Any) -> None:
        self._workflow = workflow

    @property
    def is_main(self) -> bool:
        """Whether a person has started this process; it is not the process of a job."""
        return self._workflow.is_main_process

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is to be run."""
        return self._workflow.output_settings.dryrun

    @property
    def config_files(self) -> list[Any]:
        """The files given with ``--configfile``."""
        return self._workflow.overwrite_configfiles

    @property
    def is_stored(self) -> bool:
        """Whether files are at a storage provider, because there is no shared disk."""
        return bool(self._workflow.storage_settings.default_storage_provider)

    @property
    def is_deployed(self) -> bool:
        """Whether rules run in an environment or image of their own (``--sdm``)."""
        return bool(self._workflow.deployment_settings.deployment_method)

    @property
    def is_local(self) -> bool:
        """Whether jobs run on this machine; Snakemake knows it when it schedules them."""
        return self._workflow.local_exec

    @property
    def executor(self) -> str:
        """The name of the plugin that runs the jobs."""
        return self._workflow.executor_plugin.name

    @property
    def targets(self) -> list[str]:
        """The files that were asked for by name."""
        return list(self._workflow.dag.targetfiles)

    @property
    def planned_rules(self) -> set[str]:
        """The rules of all jobs that are to be run."""
        return {job.rule.name for job in self._workflow.dag.needrun_jobs()}

    def runs_of_job(self) -> list[str]:
        """Return the runs that the job of this process makes on a cluster; none elsewhere."""
        if not self._workflow.remote_exec:
            return []
        jobs = self._workflow.dag_settings.target_jobs
        return [job.wildcards_dict["run"] for job in jobs]

    def include_with_target(self, path: str) -> None:
        """Include a Snakefile whose default target is the default target of the workflow, too."""
        self._workflow.include(path, overwrite_default_target=True)

    def offer_gpus(self, count: int) -> None:
        """Raise a limit on GPUs to the GPUs of this machine, if the profile sets a limit."""
        if "gpu" in self._workflow.global_resources and count > 1:
            self._workflow.register_resource("gpu", count)

    def start_jobs_at_once(self) -> None:
        """Switch the limit of 100 jobs a second off, for which there is no option.

        It costs more than it saves: each finished job adds a timer that wakes the scheduler every
        second, so that after a thousand jobs it does little else.
        """
        self._workflow.scheduler.job_rate_limiter = None


def hand_to_profiles(**functions: Callable[..., Any]) -> None:
    """Let expressions of a profile call these functions: they see nothing but builtins."""
    vars(builtins).update(functions)


def handle_in_a_thread(number: int) -> None:
    """Let the handler of a signal run in a thread of its own from now on.

    Snakemake's takes two locks that are not reentrant: where the signal comes while the scheduler
    itself holds one, as when its jobs have just ended by the same signal, it would wait for ever.
    """
    handle = signal.getsignal(number)
    assert callable(handle)
    signal.signal(number, lambda *received: threading.Thread(target=handle, args=received).start())


class Interrupt:
    """Ctrl-C or SIGHUP: the first ends the workflow in good order, others do not disturb that.

    On this machine the runs under way receive the signal from the terminal themselves and save
    their state; Snakemake takes it as SIGTERM: it starts nothing more and registers what its jobs
    still finish. Jobs on a cluster are cancelled, which is what Snakemake does on SystemExit.
    """

    def __init__(self, last_words: Callable[[], str], is_local: Callable[[], bool]) -> None:
        """Watch from now on; ``last_words`` are printed when the process ends after Ctrl-C.

        ``is_local`` says whether jobs run on this machine.
        """
        self.happened = 0  # the signal
        self._last_words = last_words
        self._is_local = is_local
        self._numbers = [signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            self._numbers.append(signal.SIGHUP)
        for number in self._numbers:
            signal.signal(number, self._note)
        atexit.register(self._say)

    def _note(self, received: int, _: object) -> None:
        self.happened = received
        for number in self._numbers:
            signal.signal(number, signal.SIG_IGN)
        # Snakemake handles SIGTERM once it schedules jobs
        has_jobs = signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        if not (has_jobs and self._is_local()):
            raise SystemExit(128 + received)
        os.kill(os.getpid(), signal.SIGTERM)

    def _say(self) -> None:
        if not self.happened:
            return
        try:
            text = self._last_words()
        except Exception:  # an import was interrupted, and what it left cannot be used
            text = "stopped; finished runs are kept, the same command continues"
        print(text, file=sys.stderr)
