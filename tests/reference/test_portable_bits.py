"""Portable kernels give the bits on record: here, and on emulated processors of two makers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from portable_bits import FILE

SCRIPT = FILE.with_suffix(".py")
QEMU = shutil.which("qemu-x86_64")
EMULATED = [[QEMU or "qemu-x86_64", "-cpu", name] for name in ("Haswell", "EPYC-Rome")]
EMULATION = [
    pytest.mark.portable,
    pytest.mark.skipif(QEMU is None, reason="qemu-user is not installed"),
]


@pytest.mark.parametrize(
    "emulator", [[], *(pytest.param(words, marks=EMULATION, id=words[-1]) for words in EMULATED)]
)
def test_portable_kernels_give_the_bits_on_record(emulator):
    command = [*emulator, sys.executable, str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(FILE.read_text())
