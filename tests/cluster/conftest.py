"""A checkout on the one-node Slurm; nothing here ever talks to a Slurm of anybody else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    """Returns a checkout whose profile fits the one-node Slurm; its jobs end with the test."""
    config = subprocess.run(
        ["scontrol", "show", "config"], capture_output=True, text=True, check=False
    ).stdout
    if "= onenode" not in config:
        pytest.skip("this Slurm is not that of tests/cluster/one_node.sh; run 'make test-cluster'")
    place = Checkout(tmp_path / "checkout")
    yield place
    place.close()
