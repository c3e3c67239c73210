"""What is used of Snakemake's inside: one version range, and a workflow that Ctrl-C ends."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest
import snakemake
from packaging.specifiers import SpecifierSet
from workplace import ROOT

from snakemake_logger_plugin_runs.inside import HOLDS_FOR

# What is no part of the manual: attributes of 'workflow', builtins, and modules but for these.
INSIDE = re.compile(
    r"\bworkflow\.(?!rst)[a-z]|import builtins|from snakemake\.(?!utils|cli|logging import logger)"
)


def test_the_range_of_versions_is_the_same_wherever_it_stands():
    assert f'"snakemake{HOLDS_FOR}",' in (ROOT / "pyproject.toml").read_text()
    lowest = re.search(r'min_version\("(.+)"\)', (ROOT / "workflow" / "Snakefile").read_text())
    assert HOLDS_FOR.startswith(f">={lowest[1]},")
    assert snakemake.__version__ in SpecifierSet(HOLDS_FOR)


def test_nothing_of_the_inside_is_used_elsewhere():
    plugin = ROOT / "snakemake_logger_plugin_runs"
    sources = [ROOT / "Snakefile", ROOT / "workflow" / "Snakefile", *plugin.glob("*.py")]
    for kind in ("benchmark/**/*.py", "workflow/*.py", "workflow/**/*.smk"):
        sources += ROOT.glob(kind)
    users = {path for path in sources if INSIDE.search(path.read_text())}
    assert users == {plugin / "inside.py"}


WORKFLOW = """
import os, signal, sys
from snakemake_logger_plugin_runs.inside import Interrupt

number = int(sys.argv[1])
if sys.argv[2:] == ["ignored"]:
    signal.signal(number, signal.SIG_IGN)
Interrupt(lambda: {}["words"] if sys.argv[2:] == ["none"] else "last words", lambda: True)
os.kill(os.getpid(), number)
"""


@pytest.mark.parametrize(
    ("number", "case", "status", "said"),
    [
        (signal.SIGINT, "", 128 + signal.SIGINT, "last words\n"),
        (signal.SIGHUP, "", 128 + signal.SIGHUP, "last words\n"),
        (signal.SIGHUP, "ignored", 0, ""),  # by nohup
        (signal.SIGINT, "none", 128 + signal.SIGINT, "stopped"),  # they cannot be made any more
    ],
)
def test_a_workflow_ends_with_its_last_words_unless_it_is_to_outlive_its_terminal(
    number, case, status, said
):
    done = subprocess.run(
        [sys.executable, "-c", WORKFLOW, str(int(number)), case], capture_output=True, text=True
    )
    assert done.returncode == status
    assert done.stderr.startswith(said)
    assert bool(done.stderr) == bool(said)
