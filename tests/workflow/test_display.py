"""What a person sees while a study runs: on a terminal, in a log, and after Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from workplace import LOCAL, QUICK, REPORT_STEPS, ROOT, DryRuns, Workplace, run_in, small_study

from benchmark.cli.running import snakemake_arguments

RUN = r"glyphs_tiny/test_resnet_smoke/\w+/bs32/seed[01]"
CTRL_C = b"\x03"


def command(study: str) -> list[str]:
    return [sys.executable, "-m", "benchmark", "run", f"{study}.yaml", "--cores", "2"]


def environment(quick: bool) -> dict[str, str]:
    """Return the variables of a call in which runs (if quick) and the report take no time."""
    variables = {
        "PYTHONPATH": os.pathsep.join([str(QUICK), str(ROOT)]),
        "QUICK_STEPS": REPORT_STEPS,
        "TERM": "xterm",
        "COLUMNS": "80",
    }
    # runs that take no time are not worth a process from which they are forked
    variables |= {"BENCHMARK_FORK_SERVER": "off"} if quick else {"REAL_TRAINING": "1"}
    return {**os.environ, **variables}


def on_terminal(
    words: list[str], folder: Path, press: Callable[[str], bool] = lambda seen: False, quick=True
) -> tuple[int, str]:
    """Return the status and all that a terminal shows; Ctrl-C is pressed once ``press`` agrees."""
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(words[0], words, environment(quick))
    seen = ""
    pressed = False
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline:
        ready, _, _ = select.select([screen], [], [], 1.0)
        try:
            part = os.read(screen, 65536) if ready else None
        except OSError:  # what Linux says when the last process has closed the terminal
            break
        if part == b"":
            break
        seen += (part or b"").decode(errors="replace")
        if not pressed and press(seen):
            os.write(screen, CTRL_C * 3)  # people press it more than once
            pressed = True
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


def as_read(screen: str) -> str:
    """Return the text that stays on a terminal, without what was overwritten or wiped."""
    lines = [""]
    for part in re.split(r"(\r\n|\r|\n|\x1b\[[0-9;?]*[a-zA-Z])", screen.replace("^C", "")):
        if part in ("\r\n", "\n"):
            lines.append("")
        elif part == "\x1b[1A":
            lines.pop()
        elif part in ("\r", "\x1b[2K"):
            lines[-1] = ""
        elif not part.startswith("\x1b"):
            lines[-1] += part
    return "\n".join(lines)


def test_a_log_has_one_line_a_run_then_the_verdicts_and_nothing_else(fresh: Workplace):
    fresh.write(small_study("small", ["smooth_ap"]))
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "workflow/Snakefile")]
    words += ["--profile", str(LOCAL), "--config", "study=small.yaml"]
    reads = ["reading small.yaml ..."]  # within a second, where imports and the study take several
    for call, said, first in ((command("small"), reads, 2), (words, [], 0)):
        done = run_in(fresh.folder, ["sh", "-c", '"$@" 2>&1', "sh", *call], environment(quick=True))
        assert done.returncode == 0, done.stdout
        lines = done.stdout.splitlines()
        assert lines[: len(said)] == said
        profile, plans, *lines = lines[len(said) :]
        assert profile.startswith("Using profile"), "which Snakemake says before it has a logger"
        assert plans == "planning the study's runs ..."
        for number, line in enumerate(lines[:first], start=1):
            assert re.fullmatch(rf"{RUN}  recall_at_1 0\.\d{{4}}  \({number} of 2\)", line)
        rest = "\n".join(lines[first:])
        assert re.match(r"(Nothing to be done .*\n)?\nstudy small: 2 runs: 2 ok\n", rest)
        assert rest.splitlines()[-1].endswith("results/small/report/index.html")


def test_ctrl_c_saves_what_runs_and_the_same_command_continues(fresh: Workplace):
    """A terminal shows one live line, which goes away, and keeps the last words."""
    study = small_study("small", ["smooth_ap"]) | {"seeds": [0, 1, 2]}
    study["blocks"][0] |= {"option": "long", "override": {"training": {"epochs": 6}}}
    fresh.write(study)
    log = fresh.runs / "glyphs_tiny" / "test_resnet_smoke~long"

    def under_way(seen: str) -> bool:
        logs = [path.read_text() for path in log.glob("*/*/*/train.log")]
        return sum("epoch" in text for text in logs) > 1

    status, screen = on_terminal(command("small"), fresh.folder, under_way, quick=False)
    assert status == 128 + signal.SIGINT
    assert re.search(r"[0-2] of 3 runs done, [12] running, [0-2] left", screen)
    stays = as_read(screen)
    assert "Traceback" not in screen
    assert "Exception" not in screen
    assert "rror" not in screen
    assert "\nstopping" in stays
    assert "the same command continues" in stays
    found = re.search(r"stopped: (\d) of 3 .* (\d) more", stays)
    assert found
    finished = fresh.results()
    saved = list(log.glob("*/*/*/state/checkpoint.pt"))
    assert (len(finished), len(saved)) == tuple(map(int, found.groups()))
    assert len(saved) > 0

    status, screen = on_terminal(command("small"), fresh.folder, quick=False)
    stays = as_read(screen)
    assert status == 0
    assert "study small: 3 runs: 3 ok" in stays
    assert re.search(r"about \d+ s left", screen)
    assert "3 of 3 runs done, " in screen
    assert "runs done" not in stays
    assert "recall_at_1" not in stays.partition("study small")[0]
    after = fresh.results()
    assert {name: after[name] for name in finished} == finished, "finished runs are kept"
    for path in saved:
        assert "continuing" in (path.parents[1] / "train.log").read_text()


def test_ctrl_c_before_the_first_run_leaves_no_traceback(fresh: Workplace):
    fresh.write(small_study("small", ["smooth_ap"]))
    status, screen = on_terminal(command("small"), fresh.folder, lambda seen: "Using" in seen)
    assert status != 0
    assert "Traceback" not in screen
    assert not fresh.results()


@pytest.mark.parametrize("name", ["1.10", "2024_11_21"])
def test_the_results_folder_of_run_keeps_its_name(name, fresh: Workplace, dry_runs: DryRuns):
    fresh.write(small_study("small", ["smooth_ap"]))
    words = snakemake_arguments(Path("small.yaml"), "2", Path(name))
    done = dry_runs.ask(fresh.folder, *words)
    assert done.returncode == 0, done.stdout
    assert f" {name}/runs/glyphs_tiny/" in done.stdout
