"""Replay a file of reference values: compare our losses with it in value and gradient.

    python tests/reference/replay_losses.py FILE.npz [--cases CASES.yaml]

The format of FILE is in tests/reference/README.md. Prints one line for each comparison and exits
with 1 when one misses its tolerance, or when the file has a case of unknown meaning, and with 2 for
a file that cannot be read.
"""

from __future__ import annotations

import argparse
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

sys.path.insert(0, str(Path(__file__).parent))

from exit_status import end_with

from benchmark.losses import create_loss

# Computed in float64 on both sides: what remains is rounding in another order.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Case:
    """What a case of a file is: a loss with hyperparameters, and how closely it can agree.

    ``of_score``: the tolerance is that of 1 - loss, because the loss itself may be near 0.
    """

    loss: str
    options: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = TOLERANCE
    of_score: bool = False


# The published NDCG sums its ideal in float32, in an order of its own.
SINGLE = {"tolerance": 1e-6, "of_score": True}
CASES = {
    "smoothap": Case("smooth_ap"),
    "softbin20": Case("softbin_ap"),
    "fastap10": Case("fast_ap"),
    "supap_paper": Case("sup_ap"),
    "supap_official_offset": Case("sup_ap", {"offset": 1.44}),
    # the published code adds 1e-5 to the number of positives
    "blackbox_nomargin": Case("blackbox_ap", {"margin": 0.0}, 1e-5, of_score=True),
    "calibration_pml": Case("calibration", {"reduction": "nonzero"}),
    "rs_at_k_temp1": Case("recall_at_k"),
    "smooth_recall": Case("smooth_recall"),
    "sup_recall": Case("sup_recall", {"offset": 1.44}),
    "smooth_ndcg": Case("smooth_ndcg", **SINGLE),
    "sup_ndcg": Case("sup_ndcg", {"offset": 1.44}, **SINGLE),
    **{
        f"pnp_{name.lower()}": Case("pnp", {"variant": name})
        for name in ("D_s", "D_q", "I_u", "I_b", "O")
    },
}
BINNED = {"softbin": "softbin20", "fastap": "fastap10"}


@dataclass(frozen=True)
class Comparison:
    """Relative deviations of a value and of its gradient within the unit sphere."""

    batch: str
    case: str
    value: float
    gradient: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        return self.value <= self.tolerance and self.gradient <= self.tolerance  # NaN is neither


def case_named(name: str, cases: Mapping[str, Case] = CASES) -> Case | None:
    """Return the case of a name, which may hold numbers.

    ``rs_at_k_1_4`` has the ks 1 and 4, with temperatures t_k = k; ``smoothap_tau05`` has tau 0.05,
    ``softbin20`` and ``fastap10`` have so many bins.
    """
    if name in cases:
        return cases[name]
    if re.fullmatch(r"rs_at_k(_\d+)+", name):
        ks = [int(k) for k in name.removeprefix("rs_at_k_").split("_")]
        return Case("recall_at_k", {"ks": ks, "temperatures": [float(k) for k in ks]})
    if found := re.fullmatch(r"smoothap_tau(\d+)", name):
        return Case("smooth_ap", {"tau": float(f"0.{found[1]}")})
    if found := re.fullmatch(r"(softbin|fastap)(\d+)", name):
        return replace(cases[BINNED[found[1]]], options={"bins": int(found[2])})
    return None


def read_cases(path: Path) -> dict[str, Case]:
    """Return our cases and those of a YAML file ``<case>: {loss: ..., options: {...}}``."""
    return CASES | {name: Case(**case) for name, case in yaml.safe_load(path.read_text()).items()}


def compared(data: Mapping[str, np.ndarray]) -> list[tuple[str, str]]:
    """Return every batch and case of a file that has a loss."""
    return sorted(tuple(key.rsplit("/", 2)[:2]) for key in data if key.endswith("/loss"))


def compare(data: Mapping[str, np.ndarray], batch: str, name: str, case: Case) -> Comparison:
    """Compare our loss with the values of one batch and case."""
    tensors = {
        part: torch.tensor(data[f"{batch}/{part}"])
        for part in ("embeddings", "labels", "reference_embeddings", "reference_labels")
        if f"{batch}/{part}" in data
    }
    rows = tensors.pop("embeddings").requires_grad_()
    value = create_loss(case.loss, **case.options)(rows, **tensors)
    value.backward()
    expected = float(data[f"{batch}/{name}/loss"])
    of = 1.0 - expected if case.of_score else expected
    unit = rows.detach()
    theirs = torch.tensor(data[f"{batch}/{name}/grad"])
    # along a row, which a normalising network never sees, a kink at a score of 1 decides
    ours, theirs = (part - (part * unit).sum(1, True) * unit for part in (rows.grad, theirs))
    least = torch.finfo(theirs.dtype).tiny  # a perfect ranking has no gradient
    return Comparison(
        batch,
        name,
        abs(value.item() - expected) / max(abs(of), least),
        ((ours - theirs).norm() / theirs.norm().clamp(min=least)).item(),
        case.tolerance,
    )


def replay(path: Path, cases: Mapping[str, Case] = CASES) -> Iterator[Comparison | str]:
    """Yield each comparison of a file, or a sentence about a case of unknown meaning."""
    with _opened(path) as data:
        for batch, name in compared(data):
            case = case_named(name, cases)
            if case is None:
                yield f"{batch}/{name}: unknown case; describe it in a file for --cases"
            else:
                yield compare(data, batch, name, case)


def _opened(path: Path) -> Any:
    """Return the open archive; end with a message for a file without a complete case."""
    try:
        data = np.load(path, allow_pickle=False)
        cases = compared(data)
        needed = {f"{batch}/{part}" for batch, _ in cases for part in ("embeddings", "labels")}
        needed |= {f"{batch}/{name}/grad" for batch, name in cases}
        missing = sorted(needed - set(data.files))
    except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise SystemExit(f"{path} is no record of losses: {error}") from error
    if missing or not cases:
        words = f"it lacks {', '.join(missing)}" if missing else "it has no entry BATCH/CASE/loss"
        raise SystemExit(f"{path} is no record of losses: {words}")
    return data


def main() -> int:
    """Print all comparisons of the file named on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--cases", type=Path, help="YAML: <case>: {loss: ..., options: {...}}")
    arguments = parser.parse_args()
    failures = 0
    for item in replay(arguments.file, read_cases(arguments.cases) if arguments.cases else CASES):
        if isinstance(item, str):
            print(item)
            failures += 1
            continue
        failures += not item.agrees
        print(
            f"{item.batch:<20}{item.case:<24}value {item.value:.1e}  gradient {item.gradient:.1e}"
            f"  tolerance {item.tolerance:.0e}  {'agrees' if item.agrees else 'DIFFERS'}"
        )
    return int(failures > 0)


if __name__ == "__main__":
    end_with(main)
