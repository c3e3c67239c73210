"""``--sdm apptainer`` and ``--sdm conda`` run every step in the software of envs/, our code
included.

Small scripts play both programs, which few machines have: they show which commands reach an image
or an environment. The files in envs/ say which packages those hold.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from workplace import ALL_STEPS, QUICK, ROOT, Workplace, small_study

APPTAINER = """#!/bin/bash
if [ "$1" = --version ]; then echo 'apptainer version 1.3.4'; exit; fi
while [ "${1##*.}" != sif ]; do shift; done
echo "$1" >> "$IMAGES"
PATH="$INSIDE:/usr/bin:/bin" exec "${@:2}"
"""
CONDA = """#!/bin/bash
case "$*" in
  --version) echo 'conda 24.11.3' ;;
  'clean'*) ;;
  'info --json') printf '{"conda_prefix": "%s", "platform": "linux-64"}' "$BASE" ;;
  'config --get'*) echo '{"get": {"channel_priority": "strict"}}' ;;
  'env create'*)
    while [ "$1" != --prefix ]; do shift; done
    mkdir -p "$2/bin" && cp "$INSIDE/python" "$2/bin" ;;
  *) echo "not expected: conda $*" >&2; exit 1 ;;
esac
"""
ACTIVATE = 'export PATH="$1/bin:$PATH"\n'
PYTHON = """#!/bin/bash
echo "$4 $PYTHONPATH" >> "$STEPS"
PYTHONPATH={quick}:$PYTHONPATH exec {python} "$@"
"""
STEPS = {"train", "collect", "build"}


@pytest.fixture
def programs(tmp_path: Path, fresh: Workplace) -> Path:
    """Put both programs, and a Python that tells of its steps, where ``fresh`` finds them."""
    scripts = {"bin/apptainer": APPTAINER, "bin/conda": CONDA, "bin/activate": ACTIVATE}
    scripts["inside/python"] = PYTHON.format(quick=QUICK, python=sys.executable)
    for name, text in scripts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    fresh.environment |= {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "BASE": str(tmp_path),
        "INSIDE": str(tmp_path / "inside"),
        "IMAGES": str(tmp_path / "images"),
        "STEPS": str(tmp_path / "steps"),
        "QUICK_STEPS": ALL_STEPS,
    }
    return tmp_path


@pytest.mark.parametrize("method", ["apptainer", pytest.param("conda", marks=pytest.mark.long)])
def test_every_step_runs_in_the_software_that_was_asked_for(method, programs, fresh: Workplace):
    fresh.write({**small_study("small", ["smooth_ap"]), "seeds": [0]})
    done = fresh.snakemake("small", "--sdm", method, target="results/small/report/index.html")
    assert done.returncode == 0, done.stderr
    steps = [line.split() for line in (programs / "steps").read_text().splitlines()]
    assert {step for step, *_ in steps} >= STEPS
    assert {path for _, *path in steps for path in path} == {str(ROOT)}, "the project's own code"
    if method == "apptainer":
        assert set((programs / "images").read_text().split()) == {str(ROOT / "benchmark.sif")}
