"""What ``--logger runs`` shows, from the records that Snakemake sends."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_up_records import made_up_result
from rich.console import Console
from snakemake_interface_logger_plugins.common import LogEvent

from benchmark.core.results import Metrics
from benchmark.study import load_study
from benchmark.study.grid import expand
from snakemake_logger_plugin_runs import LogHandler, StudyFacts
from snakemake_logger_plugin_runs.display import LiveLine, line
from snakemake_logger_plugin_runs.progress import Progress, Run

SPEC = next(iter(expand(load_study("smoke")).values())).spec
FACTS = StudyFacts(5, "map_at_r", lambda finished: f"the end ({finished})")


def settings(**changes):
    asked = {"dryrun": False, "verbose": False, "quiet": None, "printshellcmds": False}
    asked |= {"debug_dag": False, "nocolor": True, "stdout": False, "show_failed_logs": True}
    return SimpleNamespace(**(asked | changes))


def send(handler: LogHandler, message: str | None, level: int = logging.INFO, **facts) -> None:
    record = logging.LogRecord("snakemake", level, __file__, 1, message, (), None)
    record.__dict__.update(facts)
    handler.handle(record)


def start(handler: LogHandler, to_do: int) -> None:
    send(handler, "study small: 5 runs", study=FACTS)
    send(handler, "Workflow has started!", event=LogEvent.WORKFLOW_STARTED)
    send(handler, "Job stats", event=LogEvent.RUN_INFO, stats={"train": to_do, "collect": 1})


def job(handler: LogHandler, number: int, rule: str, folder="", log=()) -> None:
    facts = {"wildcards": {"run": f"a/b/c/bs32/seed{number}"}, "output": [f"{folder}/result.json"]}
    facts |= {"event": LogEvent.JOB_INFO, "shellcmd": "python", "log": list(log)}
    send(handler, "Rule", jobid=number, rule_name=rule, **facts)


def written(folder: Path, split: str = "test", **changes) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    metrics = Metrics({split: {"recall_at_1": 0.5, "map_at_r": 0.25}}, {})
    made_up_result(SPEC, metrics=metrics, **changes).write(folder / "result.json")
    return str(folder)


def finish(handler: LogHandler, number: int) -> None:
    send(handler, "Finished jobid", event=LogEvent.JOB_FINISHED, job_id=number)
    send(handler, None, event=LogEvent.PROGRESS, done=1, total=9)


def test_a_log_has_one_line_for_each_finished_run_with_its_score(tmp_path, capsys):
    handler = LogHandler(settings(), None)
    start(handler, to_do=3)
    for message in ("Select jobs to execute...", "Execute 2 jobs...", "Using shell: /bin/bash"):
        send(handler, message)
    job(handler, 1, "train", written(tmp_path / "one"))
    job(handler, 2, "train", written(tmp_path / "two", status="diverged", reason="non-finite"))
    finish(handler, 2)
    finish(handler, 1)
    job(handler, 3, "train", written(tmp_path / "three", split="roxford_medium"))
    finish(handler, 3)
    job(handler, 4, "collect")
    finish(handler, 4)
    send(handler, "the end", closing=True)
    assert capsys.readouterr().err.splitlines() == [
        "a/b/c/bs32/seed2  diverged: non-finite  (3 of 5)",
        "a/b/c/bs32/seed1  map_at_r 0.2500  (4 of 5)",
        "a/b/c/bs32/seed3  roxford_medium map_at_r 0.2500  (5 of 5)",
        "the end",
    ]


def test_a_failure_is_said_once_with_its_reason_and_its_log(tmp_path, capsys):
    handler = LogHandler(settings(), None)
    start(handler, to_do=1)
    log = tmp_path / "train.log"
    log.write_text("starting\nerror: the data are gone\n")
    job(handler, 1, "train", "nowhere", [str(log)])
    failed = {"rule_name": "train", "jobid": 1, "log": [str(log)], "rule_msg": None}
    send(handler, "Error in rule", logging.ERROR, event=LogEvent.JOB_ERROR, **failed)
    repeated = {"event": LogEvent.ERROR, "exception": "RuleException"}
    send(handler, "RuleException:\nCalledProcessError", logging.ERROR, **repeated)
    send(handler, "Exiting because a job execution failed. Look above", logging.ERROR)
    send(handler, "WorkflowError: the disk is full", logging.ERROR, event=LogEvent.ERROR)
    assert capsys.readouterr().err.splitlines() == [
        f"failed: a/b/c/bs32/seed1: the data are gone (see {log})",
        "WorkflowError: the disk is full",
    ]


REFUSED = """SLURM sbatch failed. The error message was 'sbatch: error: too much memory
sbatch: error: Batch job submission failed'.
    sbatch call:
        sbatch --mem 10000000"""
REFUSED_SHOWN = (
    "SLURM sbatch failed. The error message was 'sbatch: error: too much memory "
    "sbatch: error: Batch job submission failed'."
)


@pytest.mark.parametrize(
    ("written", "message", "said"),
    [
        (None, REFUSED, REFUSED_SHOWN),
        ("epoch 3\n", "SLURM status is: 'NODE_FAIL'", "SLURM status is: 'NODE_FAIL' (see {log})"),
        ("error: no data\n", "SLURM status is: 'FAILED'", "no data (see {log})"),
        ("epoch 3\n", None, "epoch 3 (see {log})"),
        ("", None, "(see {log})"),
        (None, None, "(see .snakemake/log)"),
    ],
)
def test_a_failure_is_told_by_the_log_and_else_by_the_cluster(
    tmp_path, capsys, written, message, said
):
    log = tmp_path / "train.log"
    if written is not None:
        log.write_text(written)
    handler = LogHandler(settings(), None)
    start(handler, to_do=1)
    job(handler, 1, "train", "nowhere", [str(log)])
    failed = {"rule_name": "train", "jobid": 1, "log": [str(log)], "rule_msg": message}
    send(handler, "Error in rule", logging.ERROR, event=LogEvent.JOB_ERROR, **failed)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("failed: a/b/c/bs32/seed1: ")
    assert line.endswith(said.format(log=log))


def test_after_ctrl_c_runs_that_still_finish_are_told_and_no_errors(tmp_path, capsys):
    handler = LogHandler(settings(), None)
    start(handler, to_do=2)
    job(handler, 1, "train", written(tmp_path))
    job(handler, 2, "train", "nowhere")
    for _ in range(2):
        send(handler, "Will exit after finishing currently running jobs (scheduler).")
    finish(handler, 1)
    failed = {"rule_name": "train", "jobid": 2, "log": [], "rule_msg": None}
    send(handler, "Error in rule", logging.ERROR, event=LogEvent.JOB_ERROR, **failed)
    send(handler, "WorkflowError: a job failed", logging.ERROR, event=LogEvent.ERROR)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("stopping")
    assert second == "a/b/c/bs32/seed1  map_at_r 0.2500  (4 of 5)"


def test_nothing_to_do_is_said_with_the_last_words(capsys):
    handler = LogHandler(settings(), None)
    send(handler, "study small: 5 runs", study=FACTS)
    send(handler, "Workflow has started!", event=LogEvent.WORKFLOW_STARTED)
    send(handler, "Nothing to be done (all requested files are present and up to date).")
    assert capsys.readouterr().err.splitlines()[1] == "the end (True)"


def test_a_folder_at_work_is_one_sentence_that_says_what_to_do(capsys):
    handler = LogHandler(settings(), None)
    text = "LockException:\nError: Directory cannot be locked. ... with the --unlock argument."
    send(handler, text, logging.ERROR, event=LogEvent.ERROR, exception="LockException")
    (line,) = capsys.readouterr().err.splitlines()
    assert "when it has ended" in line
    assert "rm -r .snakemake/locks" in line
    assert "--unlock" not in line, "'python -m benchmark run' has no such option"


def test_a_plan_names_one_of_many_files(capsys):
    handler = LogHandler(settings(dryrun=True), None)
    files = [f"runs/seed{number}/result.json" for number in range(240)]
    words = dict.fromkeys(("rule_msg", "benchmark", "indent", "shellcmd", "local", "is_handover"))
    words |= {"rule_name": "collect", "jobid": 1, "wildcards": {}, "threads": 1, "priority": 1}
    words |= {"input": files, "output": files[:3], "log": [], "is_checkpoint": False}
    words |= {"resources": {"mem_mb": 10, "tmpdir": "/tmp", "gpu": 1, "minutes": 30, "disk": 1}}
    reason = f"Missing output files: {', '.join(files[:5])}; Input files updated by another job: "
    send(handler, "Rule", event=LogEvent.JOB_INFO, reason=reason + ", ".join(files), **words)
    said = capsys.readouterr().err
    assert f"input: {files[0]} and 239 more\n" in said
    assert f"output: {', '.join(files[:3])}\n" in said
    reason = f"Missing output files: {files[0]} and 4 more; Input files updated by another job: "
    assert f"reason: {reason}{files[0]} and 239 more\n" in said
    assert "mem_mb=10, tmpdir=/tmp, gpu=1, minutes=30, disk=1" in said


def test_messages_of_other_commands_are_shown(capsys):
    handler = LogHandler(settings(), None)
    send(handler, "Unlocked working directory.")
    assert capsys.readouterr().err == "Unlocked working directory.\n"


@pytest.mark.parametrize(
    "asked", [{"dryrun": True, "stdout": True}, {"quiet": {"host"}}, {"printshellcmds": True}]
)
def test_who_asks_snakemake_gets_its_own_words(asked, capsys):
    handler = LogHandler(settings(**asked), None)
    send(handler, "Select jobs to execute...")
    said = capsys.readouterr()
    assert "Select jobs" in (said.out if asked.get("stdout") else said.err)


def test_a_record_that_cannot_be_shown_ends_nothing(capsys):
    handler = LogHandler(settings(), None)
    send(handler, "Rule", event=LogEvent.JOB_INFO)
    assert "Logging error" in capsys.readouterr().err


class TestTheLiveLine:
    def progress(self, monkeypatch) -> Progress:
        clock = iter([0.0, 60.0, 60.0, 60.0])
        monkeypatch.setattr("time.monotonic", lambda: next(clock))
        progress = Progress(FACTS)
        progress.begin(4)
        for number in range(3):
            progress.running[number] = Run(f"run{number}", Path("nowhere"))
        progress.finish_run(0)
        return progress

    def test_counts_runs_and_the_time_left(self, monkeypatch):
        progress = self.progress(monkeypatch)
        assert re.findall(r"\d", line(progress)) == ["2", "5", "2", "1", "3"]

    def test_says_how_many_failed(self, monkeypatch):
        progress = self.progress(monkeypatch)
        progress.fail_run(1)
        assert re.findall(r"\d", line(progress)) == ["2", "5", "1", "1", "1", "2"]

    def test_names_the_step_when_all_runs_are_done(self):
        progress = Progress(FACTS, step="tables")
        progress.begin(0)
        assert line(progress).endswith(", tables")

    def test_fits_one_line_of_a_terminal_and_goes_away(self):
        screen = io.StringIO()
        live = LiveLine(Console(file=screen, force_terminal=True, width=60))
        progress = Progress(FACTS, step="x" * 80)
        progress.begin(0)
        live.update(progress)
        live.say("failed: a run")
        live.stop()
        live.update(progress)
        text = screen.getvalue()
        assert "failed: a run" in text
        assert "x" * 60 not in text
        assert text.endswith("\x1b[2K"), "the line is wiped and stays away"
