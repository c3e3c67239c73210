from __future__ import annotations

import getpass
import json
import os
import platform
import re
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmark.core import provenance
from benchmark.core.environment import PORTABLE


def test_the_platform_label_names_system_machine_python_torch_and_device():
    assert re.fullmatch(
        r"[a-z]+-\w+-py3\.\d+-torch\d+\.\d+-(cpu|cuda)", provenance.platform_label()
    )


def test_hardware_and_packages_are_plain_facts():
    hardware = provenance.hardware()
    assert hardware.cores >= hardware.usable_cores >= 1
    assert hardware.memory_gb > 0
    assert isinstance(hardware.cpu, str)
    assert isinstance(hardware.gpus, list)
    packages = provenance.packages()
    assert {"python", "torch", "timm", "numpy", "mlflow", "snakemake"} <= set(packages)


@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the variable chooses among instructions of x86"
)
@pytest.mark.parametrize(
    "variables, found",
    [
        ({}, "portable AVX2"),
        pytest.param(
            {"BENCHMARK_NUMERICS": "native", "ATEN_CPU_CAPABILITY": "default"},
            "native DEFAULT",
            marks=pytest.mark.long,
        ),
    ],
)
def test_kernels_say_who_chose_them_and_what_torch_uses(variables, found):
    code = "import benchmark.core.environment as e; e.choose_kernels(); "
    code += "import torch, benchmark.core.provenance as p; print(p.kernels())"
    clean = {name: value for name, value in os.environ.items() if name not in PORTABLE}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == found


def test_nothing_names_a_person_a_machine_or_a_folder():
    facts = [
        asdict(provenance.hardware()),
        provenance.packages(),
        provenance.platform_label(),
    ]
    text = json.dumps(facts)
    assert socket.gethostname() not in text
    assert str(Path.home()) not in text
    assert str(Path.cwd()) not in text
    assert f"/{getpass.getuser()}" not in text


def test_importing_provenance_does_not_import_torch():
    code = (
        "import sys, benchmark.core.provenance as p; p.platform_label(); p.hardware(); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
