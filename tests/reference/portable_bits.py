"""Digests of what the embedded study computes: the same bits on every x86-64 processor with AVX2.

``python tests/reference/portable_bits.py`` prints them; with ``--update`` it writes
portable_bits.json anew. QEMU 7 crashes in ``np.sort`` of another thread: ranks are computed in one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmark.core.environment import choose_kernels  # noqa: E402

choose_kernels()

import numpy as np  # noqa: E402
import torch  # noqa: E402

from benchmark.core.files import write_json  # noqa: E402
from benchmark.core.interrupts import Interrupted  # noqa: E402
from benchmark.core.records import RunSpec  # noqa: E402
from benchmark.metrics.ranks import ClassIndex, rank_rows, unit_rows  # noqa: E402
from benchmark.study import load_study  # noqa: E402
from benchmark.study.grid import expand  # noqa: E402
from benchmark.training.components import build_components  # noqa: E402
from benchmark.training.loop import Trainer  # noqa: E402
from benchmark.training.numerics import prepare_numerics  # noqa: E402
from benchmark.training.progress import Progress  # noqa: E402

FILE = Path(__file__).with_name("portable_bits.json")
STEPS = 2


def digest(*arrays: Any) -> str:
    """Return eight hex digits of the bytes of arrays."""
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return hashlib.sha256(content).hexdigest()[:8]


def trained(spec: RunSpec) -> str:
    """Return the digest of losses and weights after the first steps of a run."""
    looks = iter(range(STEPS))
    stop: Any = SimpleNamespace()
    with tempfile.TemporaryDirectory() as folder:
        components = build_components(spec, prepare_numerics(spec.recipe.training))
        trainer = Trainer(components, Path(folder), Progress(spec.run_id, 1))
        stop = type("Stop", (), {"requested": property(lambda _: next(looks) == STEPS - 1)})()
        with contextlib.suppress(Interrupted):
            trainer.run(stop)
    weights = [value.numpy() for value in components.model.state_dict().values()]
    return digest(np.array(trainer.state.losses), *weights)


def ranked() -> str:
    """Return the digest of cosines and of the ranks of all positives."""
    generator = np.random.default_rng(0)
    rows = unit_rows(generator.normal(size=(400, 64)))
    classes = np.repeat(np.arange(40), 10)
    scores = rows @ rows.T
    counts, positives = ClassIndex(classes).positives(classes, np.arange(400))
    return digest(scores, rank_rows(scores, counts, positives))


def main() -> None:
    """Print a line for each digest, or write the file."""
    runs = [run.spec for run in expand(load_study("embedded")).values() if run.spec.seed == 0]
    found = {spec.run_id: trained(spec) for spec in runs} | {"ranks": ranked()}
    if "--update" in sys.argv[1:]:
        write_json(FILE, found)
    print(json.dumps({"torch": torch.backends.cpu.get_cpu_capability(), **found}))


if __name__ == "__main__":
    main()
