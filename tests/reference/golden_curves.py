"""A few tiny runs whose curves are on record: what another machine, or tomorrow's code, is compared
with.

``python tests/reference/golden_curves.py`` writes golden_curves.json anew, after a change that is
meant.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from benchmark.core.environment import choose_kernels  # noqa: E402
from benchmark.training.fork_server import THREADS  # noqa: E402

os.environ.update(THREADS)
choose_kernels()

from tiny_runs import tiny_spec, write_spec_in  # noqa: E402

from benchmark.core import provenance  # noqa: E402
from benchmark.core.files import write_json  # noqa: E402
from benchmark.core.records import RunSpec  # noqa: E402
from benchmark.training.run import train  # noqa: E402

FILE = Path(__file__).parent / "golden_curves.json"


def golden_runs() -> dict[str, RunSpec]:
    """Return the specification of each run on record: exact gradients, noise, proxies, a memory,
    micro-batches."""
    two = {"epochs": 2, "checkpoint_seconds": 1e9}
    return {
        "roadmap": tiny_spec("roadmap", training=two),
        "blackbox_ap, noise": tiny_spec("blackbox_ap", training=two),
        "proxy_nca, proxies": tiny_spec("proxy_nca", training=two),
        "contrastive, memory and micro-batches": tiny_spec(
            "contrastive",
            training={**two, "micro_batch": 12},
            model={"freeze_batch_norm": True},
            memory={"size": -1},
        ),
    }


def curve_of(spec: RunSpec, folder: Path) -> dict[str, Any]:
    """Return loss and scores of each epoch, and the digest of the batches."""
    result = train(write_spec_in(folder, spec))
    content = result.as_json()
    return {name: content[name] for name in ("curve", "batch_stream", "status")}


def here() -> dict[str, Any]:
    """Return what decides whether bits can be expected to be equal."""
    packages = provenance.packages()
    return {
        "platform": provenance.platform_label(),
        "kernels": provenance.kernels(),
        "packages": {name: packages[name] for name in ("numpy", "timm", "torch")},
    }


def main() -> None:
    """Train all of them and write the file."""
    with tempfile.TemporaryDirectory() as place:
        runs = {name: curve_of(spec, Path(place) / name) for name, spec in golden_runs().items()}
    write_json(FILE, {"machine": here(), "runs": runs})


if __name__ == "__main__":
    main()
