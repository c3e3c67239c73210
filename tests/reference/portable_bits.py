"""Digests of what the embedded study computes: the same bits on every x86-64 processor with AVX2.

``python tests/reference/portable_bits.py`` prints them; with ``--update`` it writes
portable_bits.json anew. QEMU 7 crashes in ``np.sort`` of another thread: ranks are computed in one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmark.core.environment import choose_kernels  # noqa: E402
from benchmark.training.fork_server import THREADS  # noqa: E402

os.environ.update(THREADS)
choose_kernels()

import numpy as np  # noqa: E402
import torch  # noqa: E402

from benchmark.core.files import write_json  # noqa: E402
from benchmark.core.interrupts import Interrupted, StopRequest  # noqa: E402
from benchmark.core.records import DatasetChoice, RunSpec  # noqa: E402
from benchmark.losses import create_loss  # noqa: E402
from benchmark.metrics.ranks import ClassIndex, rank_rows  # noqa: E402
from benchmark.metrics.sets import unit_rows  # noqa: E402
from benchmark.study import load_study  # noqa: E402
from benchmark.study.grid import expand  # noqa: E402
from benchmark.training.components import build_components  # noqa: E402
from benchmark.training.loop import Trainer  # noqa: E402
from benchmark.training.numerics import prepare_numerics  # noqa: E402
from benchmark.training.progress import Progress  # noqa: E402

FILE = Path(__file__).with_name("portable_bits.json")


def digest(*arrays: Any) -> str:
    """Return eight hex digits of the bytes of arrays."""
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return hashlib.sha256(content).hexdigest()[:8]


def stepped(spec: RunSpec) -> str:
    """Return the digest of the loss and the weights after the first step of a run."""
    tiny = replace(spec, dataset=DatasetChoice("glyphs_tiny", "glyphs_tiny", {}))
    components = build_components(tiny, prepare_numerics(spec.recipe.training))
    stop = StopRequest()
    stop.requested = True
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Interrupted):
        trainer = Trainer(components, Path(folder), Progress(spec.run_id, 1))
        trainer.run(stop)
    weights = [value.numpy() for value in components.model.state_dict().values()]
    return digest(np.array(trainer.state.losses), *weights)


def gradient(spec: RunSpec) -> str:
    """Return the digest of a loss and of its gradient at random embeddings of the run's shape."""
    generator = torch.Generator().manual_seed(0)
    size = spec.batch_size
    dim = spec.recipe.model.embedding_dim
    rows = torch.randn(size, dim, generator=generator).requires_grad_()
    labels = torch.arange(size) // 4
    torch.manual_seed(0)  # of noise
    loss = create_loss(spec.loss.name, **spec.loss.params)
    value = loss(torch.nn.functional.normalize(rows), labels)
    value.backward()
    return digest(value.detach().numpy(), rows.grad.numpy())


def ranked() -> str:
    """Return the digest of cosines and of the ranks of all positives."""
    generator = np.random.default_rng(0)
    rows = unit_rows(generator.normal(size=(400, 64)))
    classes = np.repeat(np.arange(40), 10)
    scores = rows @ rows.T
    counts, positives = ClassIndex(classes).positives(classes, np.arange(400))
    return digest(scores, rank_rows(scores, counts, positives))


def main() -> None:
    """Print the digests, or write the file."""
    runs = [run.spec for run in expand(load_study("embedded")).values() if run.spec.seed == 0]
    found = {f"gradient {spec.loss.name} {spec.batch_size}": gradient(spec) for spec in runs}
    found |= {"step": stepped(runs[0]), "ranks": ranked()}
    if "--update" in sys.argv[1:]:
        write_json(FILE, found)
    print(json.dumps(found, sort_keys=True))


if __name__ == "__main__":
    main()
