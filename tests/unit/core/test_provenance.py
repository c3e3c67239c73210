from __future__ import annotations

import getpass
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmark.core import provenance


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package that a test may change, with a fresh cache."""
    copy = tmp_path / "benchmark"
    shutil.copytree(provenance.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(provenance, "PACKAGE", copy)
    monkeypatch.delenv("BENCHMARK_PLUGINS", raising=False)
    return copy


def version() -> str:
    return provenance.code_version.__wrapped__()


def test_the_code_version_is_the_package_version_and_a_digest_of_sources():
    assert re.fullmatch(r"0\.1\.0\+[0-9a-f]{12}", provenance.code_version())


@pytest.mark.parametrize("part", provenance.DECISIVE)
def test_every_part_that_decides_numbers_is_there_and_counts(package, part):
    before = version()
    place = package / part
    file = place if place.is_file() else place / "__init__.py"
    file.write_text(file.read_text() + "\n# changed\n")
    assert version() != before


def test_a_change_of_the_report_does_not_make_finished_runs_look_old(package):
    before = version()
    (package / "report" / "new_page.py").write_text("x = 1\n")
    assert version() == before


def test_line_endings_do_not_change_the_code_version(package):
    before = version()
    file = package / "core" / "seeding.py"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert version() == before


def test_plugins_in_use_are_part_of_the_code_version(package, tmp_path, monkeypatch):
    before = version()
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "toy.py").write_text("x = 1\n")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(plugins))
    with_plugin = version()
    (plugins / "toy.py").write_text("x = 2\n")
    assert len({before, with_plugin, version()}) == 3


def test_git_state_names_the_commit_and_marks_local_changes(package):
    def git(*words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        return subprocess.run(
            ["git", "-C", str(package), *identity, *words],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    assert provenance.git_state() is None
    git("init", "-q")
    assert provenance.git_state() is None  # a repository that does not hold the package
    git("add", ".")
    git("commit", "-qm", "all")
    commit = git("rev-parse", "--short=12", "HEAD")
    assert provenance.git_state() == commit
    (package / "core" / "seeding.py").write_text("changed")
    assert provenance.git_state() == f"{commit}-dirty"


def test_the_platform_label_names_system_machine_python_torch_and_device():
    assert re.fullmatch(
        r"[a-z]+-\w+-py3\.\d+-torch\d+\.\d+-(cpu|cuda)", provenance.platform_label()
    )


def test_hardware_and_packages_are_plain_facts():
    hardware = provenance.hardware()
    assert hardware.cores >= hardware.usable_cores >= 1 and hardware.memory_gb > 0
    assert isinstance(hardware.cpu, str) and isinstance(hardware.gpus, list)
    packages = provenance.packages()
    assert {"python", "torch", "timm", "numpy", "mlflow", "snakemake"} <= set(packages)


@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the variable chooses among instructions of x86"
)
def test_instructions_are_those_that_torch_was_told_to_use():
    code = "import torch, benchmark.core.provenance as p; print(p.instructions())"
    variables = {**os.environ, "ATEN_CPU_CAPABILITY": "default"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "DEFAULT"


def test_nothing_names_a_person_a_machine_or_a_folder():
    facts = [
        asdict(provenance.hardware()),
        provenance.packages(),
        provenance.platform_label(),
        provenance.code_version(),
    ]
    text = json.dumps(facts)
    assert socket.gethostname() not in text
    assert str(Path.home()) not in text and str(Path.cwd()) not in text
    assert f"/{getpass.getuser()}" not in text


def test_importing_provenance_does_not_import_torch():
    code = "import sys, benchmark.core.provenance as p; p.platform_label(); p.hardware(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
