"""Whether the suite still computes the same: every study, filled with made-up runs, from the
specifications of its runs to its tables, compared by digests. README.md says how to use it."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import math
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
import numpy as np
import pandas as pd
import typer

ROOT = Path(__file__).resolve().parents[2]
DIGESTS = Path(__file__).with_name("digests.txt")

# --- What depends on how the suite is built: its verbs, and the files that they leave. ------------
SPECIFY = ("specs",)  # the specification of every run
MATCH = ("collect", "verdicts")  # before any run: which run answers which printed number
BUILD = ("collect", "build")
# from trials to final runs; of all studies
SELECT = ("select",)
COVER = ("coverage",)
FILES = ("*.csv", "stats/*.csv", "tables/*.csv")
MADE_UP = (*FILES, "figures/*.csv", "provenance.json")
TRIALS = ("runs.csv", "selection.json")
# Columns and keys with words for people; and what differs between two trainings.
PROSE = "reason|condition|note|footnote|sentence|says|rests on|may hold|outside|errors|warnings"
COSTS = "[a-z]+_seconds|images_per_second|loss_ms|peak_[a-z_]+|resumed|platform|code_version"
COST_FILES = ("stats/costs.csv", "tables/cost.csv", "tables/claims.csv")


def call(verbs: tuple[str, ...], *words: object) -> str:
    """Run verbs of the suite in this process, all with these arguments; return what they print."""
    from benchmark.__main__ import app

    os.chdir(ROOT)
    said = io.StringIO()
    command = typer.main.get_command(app)
    for verb in verbs:
        arguments = [verb, *map(str, words)]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            status = command.main(arguments, standalone_mode=False)
        if status:
            raise SystemExit(f"{' '.join(arguments)} failed")
    return said.getvalue()


def bounded(value: float) -> float:
    """Return a score in [0, 1], of so few digits that no processor makes another of it."""
    return round(min(1.0, max(0.0, value)), 7)


def drawn(*key: object) -> random.Random:
    """Return the generator of a key: the same numbers in every process and on every machine."""
    words = map(str, ("evidence", *key))
    return random.Random("/".join(words))


def printed_scores(folder: Path) -> dict[str, Any]:
    """Return printed scores by cell and split, from the verdicts before any run."""
    found: dict[str, Any] = {}
    rows = pd.read_csv(folder / "verdicts.csv").dropna(subset=["setting", "reference_mean"])
    for row in rows.itertuples():
        cell = f"{row.dataset}/{row.setting}/{row.loss}/bs{row.batch_size:.0f}"
        splits = found.setdefault(cell, {})
        splits.setdefault(row.split, {})[row.metric] = row.reference_mean / 100
    return found


def splits_of(spec: dict[str, Any], printed: dict[str, Any]) -> list[str]:
    """Return the test splits of a run."""
    cell = spec["run_id"].rpartition("/")[0]
    name = spec["dataset"]["name"]
    if name in ("sfm120k", "landmarks_clean"):
        sets = spec["dataset"]["params"].get("landmarks", ["roxford5k", "rparis6k"])
        return [f"{landmarks}_{level}" for landmarks in sets for level in ("medium", "hard")]
    if cell in printed:
        return sorted(printed[cell])
    dataset = cell.partition("/")[0]
    of_dataset = [splits for other, splits in printed.items() if other.startswith(f"{dataset}/")]
    if of_dataset:
        return sorted(set().union(*of_dataset))
    return ["held_out" if name == "class_folds" else "test"]


def end_scores(spec: Any, split: str, printed: Any, own: random.Random) -> dict[str, float]:
    """Return the scores after the last epoch: near the printed ones, or at a level of the cell."""
    cell = spec["run_id"].rpartition("/")[0]
    dataset = spec["run_id"].partition("/")[0]
    level = drawn("level", dataset, split).uniform(0.35, 0.7)
    level += drawn("loss", cell, split).uniform(-0.06, 0.06)
    shift = drawn("shift", cell, split).choice([0.0, 0.0, 0.0, 0.002, -0.05, 0.05])
    noise = drawn("noise", cell).choice([0.0008, 0.002, 0.006])
    luck = own.gauss(0, noise)
    luck += 0.0006 * drawn("seed", dataset, spec["seed"]).gauss(0, 1)
    wanted = {"map_at_r": level, "map": level}
    for rank, k in enumerate(spec["recipe"]["evaluation"]["recall_at"]):
        wanted[f"recall_at_{k}"] = level + 0.2 * rank / (rank + 2)
    for name in wanted:
        if name in printed:
            wanted[name] = printed[name] + shift
    return {name: bounded(wanted[name] + luck + own.gauss(0, noise / 4)) for name in wanted}


def query_scores(own: random.Random, ends: dict[str, float]) -> tuple[dict[str, Any], ...]:
    """Return the scores of 60 queries of 12 classes whose means are about ``ends``, and those."""
    chance = max(0.02, min(0.98, ends["map"]))
    misses = math.log(1 - chance)
    ranks = [int(math.log(1 - own.random()) / misses) + 1 for _ in range(60)]
    kept: dict[str, Any] = {
        "query": [*range(60)],
        "label": [query % 12 for query in range(60)],
    }
    sums = {}
    for name in ("map", "map_at_r"):  # parts of 1024 are the same in every precision
        kept[name] = [round(1024 * bounded(own.gauss(ends[name], 0.2))) / 1024 for _ in ranks]
        sums[name] = sum(kept[name])
    kept["nearest"] = ranks
    for name in ends:
        k = name.removeprefix("recall_at_")
        if k != name:
            sums[name] = sum(rank <= int(k) for rank in ranks)
    return kept, {name: bounded(sums[name] / 60) for name in ends}


def curve_of(spec: dict[str, Any], printed: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the losses and scores by epoch, and the scores of the last epoch's queries."""
    own = drawn(spec["run_id"])
    cell = spec["run_id"].rpartition("/")[0]
    queries = {}
    last = min(3, spec["recipe"]["training"]["epochs"])
    curve = [
        {"epoch": epoch, "loss": bounded(own.random() / epoch)} for epoch in range(1, last + 1)
    ]
    if not curve:
        curve = [{"epoch": 0, "loss": None}]
    for split in splits_of(spec, printed):
        ends = end_scores(spec, split, printed.get(cell, {}).get(split, {}), own)
        if "glyphs" in cell and cell not in printed and split == "test":
            queries[split], ends = query_scores(own, ends)
        for point in curve[:-1]:
            point[split] = {name: bounded(ends[name] - own.gauss(0.01, 0.01)) for name in ends}
        curve[-1][split] = ends
    return curve, queries


def make_run(folder: Path, printed: dict[str, Any], whole: bool) -> None:
    """Write what a run leaves; unless its study is ``whole``, few diverge, fail or are missing."""
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    run_id = spec["run_id"]
    own = drawn("cost", run_id)
    luck = 0.5 if whole else own.random()
    if luck < 0.012 and ".fold" not in run_id:
        if luck < 0.004:
            (folder / "train.log").write_text("error: made up\n", encoding="utf-8")
        return
    curve, queries = curve_of(spec, printed)
    epochs = curve[-1]["epoch"]
    last = {k: v for k, v in curve[-1].items() if isinstance(v, dict)}
    best: dict[str, Any] = {}
    for split, scores in last.items():
        best[split] = {}
        for name in scores:
            values = [point[split][name] for point in curve]
            first = values.index(max(values))
            best[split][name] = {"value": values[first], "epoch": curve[first]["epoch"]}
    status = "diverged" if luck > 0.985 else "ok"
    if status == "diverged":
        curve = [{"epoch": epochs, "loss": None}]
        last = {}
        best = {}
        queries = {}
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    data = spec["dataset"]["name"]
    backbone = spec["recipe"]["model"]["backbone"]
    whose = {
        "schema": 1,
        "run_id": run_id,
        "spec_digest": digest,
        "code_version": "0+evidence",
    }
    draws = {
        "loss_ms": 9,
        "images_per_second": 900,
        "startup_seconds": 9,
        "train_seconds": 90,
        "eval_seconds": 9,
        "total_seconds": 99,
    }
    cost: dict[str, float] = {key: round(own.uniform(1, most), 3) for key, most in draws.items()}
    cost |= dict.fromkeys(("updates", "images_forward", "images_backward", "resumed"), 10 * epochs)
    provenance = {
        **whose,
        "timing": cost,
        "memory": {"peak_rss_mb": 700.5, "peak_gpu_mb": 0.0},
        "platform": "made-up",
        "machines": ["made up"],
        "packages": {"torch": "2.13.0"},
        "package_digests": [],
        "hardware": {"cpu": "", "cores": 4, "usable_cores": 2, "memory_gb": 7.5, "gpus": []},
        "weights": {
            "backbone": backbone,
            "weights": "",
            "initial_digest": f"{drawn('weights', backbone, spec['seed']).getrandbits(64):016x}",
            "parameters": 1000,
        },
        "numerics": {
            "device": "cpu",
            "precision": "float32",
            "threads": 1,
            "kernels": "",
            "deterministic": True,
        },
    }
    result = {
        **whose,
        "status": status,
        "reason": "" if status == "ok" else "made up",
        "curve": curve,
        "epochs": epochs,
        "steps": 10 * epochs,
        "metrics": {"last": last, "best": best},
        "batch_stream": {
            "batches": 20,
            "sha256": f"{drawn('batches', data, spec['seed']).getrandbits(256):064x}",
        },
        "dataset": {
            "name": data,
            "fingerprint": "made up",
            "counts": {"train": {"images": 50, "classes": 5}},
        },
    }
    (folder / "provenance.json").write_text(json.dumps(provenance), encoding="utf-8")
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    if not queries:
        return
    arrays = {}
    for split, kept in queries.items():
        for name, values in kept.items():
            kind = np.float32 if "map" in name else np.int32
            arrays[f"{split}/{name}"] = np.array(values, kind)
    np.savez(folder / "queries.npz", spec_digest=np.array(digest), **arrays)


def make_gaps(folder: Path) -> None:
    """Write the decomposability gaps that an analysis would have measured in ROADMAP's study."""
    place = folder / "analyses" / "decomposability_gap"
    place.mkdir(parents=True)
    run = pd.read_csv(folder / "runs.csv").query("loss == 'roadmap'").iloc[0]
    size = run["batch_size"]
    lines = ["kind,trained_at,measured_at,seed,loss,gap"]
    for seed in range(3):
        for loss, most in (("sup_ap", 0.2), ("roadmap", 0.1)):
            gap = bounded(drawn("gap", seed, loss).uniform(most / 2, most))
            lines.append(f"gap,{size},{size},{seed},{loss},{gap}")
    (place / "figure.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    facts = {"schema": 1, "quick": False, "runs": [{"run_id": run["run_id"]}]}
    (place / "summary.json").write_text(json.dumps(facts), encoding="utf-8")


def evidence_of(study: Path, results: Path) -> dict[str, str]:
    """Fill a study, or its trials and then its final runs; return {study/file: text} of all."""
    name = study.stem
    words = (study, "--results", results)
    folder = results / name
    before = set(results.glob("runs/**/spec.json"))
    call((*SPECIFY, *MATCH), *words)
    specs = sorted(set(results.glob("runs/**/spec.json")) - before)
    printed = printed_scores(folder)
    trials = ".fold" in specs[0].as_posix()
    for path in specs:
        make_run(path.parent, printed, whole=name in ("noise", "sweeps"))
    call(SELECT if trials else BUILD, *words)
    if name == "roadmap":
        make_gaps(folder)
        call(BUILD, *words)  # what reads them
    texts = read_files(folder, TRIALS if trials else MADE_UP)
    texts[f"spec.json of {len(specs)} runs"] = "\n".join(path.read_text("utf-8") for path in specs)
    found = {f"{name}/{file}": text for file, text in texts.items()}
    if trials:
        found |= evidence_of(folder / f"{name}-selected.yaml", results)
    return found


def read_files(folder: Path, files: Iterable[str], leave: str = PROSE) -> dict[str, str]:
    """Return {file: text} of the files of these patterns, without columns and keys of ``leave``."""
    words = re.compile(rf"(?i)\b({leave})\b")
    found = {}

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(value[key]) for key in value if not words.search(key)}
        if isinstance(value, list):
            return [without(item) for item in value]
        return value

    paths = {path for pattern in files for path in folder.glob(pattern)}
    for path in sorted(paths):
        if path.suffix == ".json":
            content = without(json.loads(path.read_bytes()))
            text = json.dumps(content, indent=1, sort_keys=True)
        else:
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
            kept = [name for name in table if not words.search(name)]
            text = table[kept].to_csv(index=False)
        found[path.relative_to(folder).as_posix()] = text
    return found


def trained(results: Path) -> dict[str, str]:
    """Return {file: text} of what smoke and embedded came to, without costs and versions."""
    files = ["runs/**/result.json"]
    files += [f"smoke/{pattern}" for pattern in FILES]
    files += [f"embedded/{pattern}" for pattern in FILES]
    found = read_files(results, files, f"{PROSE}|{COSTS}")
    costs = re.compile(r"(?m)^.* (seconds|ms|gpu)\b.*\n")  # claims about them
    return {
        name: costs.sub("", text) for name, text in found.items() if not name.endswith(COST_FILES)
    }


def made(studies: list[Path], *, covered: bool) -> dict[str, str]:
    """Return {study/file: text} of studies, and the printed numbers that runs of all cover."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place, ProcessPoolExecutor(2) as pool:
        folders = [Path(place, study.stem) for study in studies]
        for texts in pool.map(evidence_of, studies, folders):
            found |= texts
        if covered:
            every = Path(place, "all")
            for folder in folders:  # two studies may share a run
                shutil.copytree(folder, every, dirs_exist_ok=True)
            said = pool.submit(call, COVER, "--results", every).result()
            found["coverage"] = said.partition("\n\n")[0]  # then come reasons, in words
    return found


def compared(old: dict[str, str], new: dict[str, str]) -> int:
    """Print which files of two sides differ, and where first; return the exit status."""
    differing = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    for name in differing:
        before = old.get(name, "")
        now = new.get(name, "")
        try:  # tables of one shape: by rows and columns
            table = pd.read_csv(io.StringIO(before), dtype=str)
            other = pd.read_csv(io.StringIO(now), dtype=str)
            rows = table.compare(other, result_names=("before", "now"))
            first = rows.head(3).to_string()
        except ValueError:
            lines = itertools.zip_longest(before.splitlines(), now.splitlines())
            apart = next(pair for pair in lines if pair[0] != pair[1])
            first = "\n".join(str(line)[:300] for line in apart)
        print(f"{name} differs:\n{first}")
    print(f"{len(differing)} of {len(new)} files differ")
    return 1 if differing or not new else 0


def main(words: list[str] | None = None) -> int:
    """Make evidence and compare it; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", nargs="?", default="*", help="only this one")
    parser.add_argument("--update", action="store_true", help="write the digests anew")
    parser.add_argument("--files", type=Path, help="folder to write, or to compare if it exists")
    parser.add_argument("--trained", nargs=2, type=Path, help="compare two folders of results")
    asked = parser.parse_args(words)
    if asked.trained:
        return compared(*map(trained, asked.trained))
    studies = sorted(ROOT.glob(f"workflow/config/{asked.study}.yaml"), reverse=True)
    new = made(studies, covered=asked.study == "*")
    if asked.files and asked.files.is_dir():
        paths = [path for path in asked.files.rglob("*") if path.is_file()]
        old = {str(path.relative_to(asked.files)): path.read_text("utf-8") for path in paths}
    else:
        for name, text in new.items():
            if asked.files:
                path = asked.files / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            new[name] = f"{name}  {len(text.splitlines())} lines  {digest}"
        old = {line.split("  ")[0]: line for line in DIGESTS.read_text("utf-8").splitlines()}
    others = {}
    if asked.study != "*":
        for name in list(old):
            study, *_ = re.split("/|-selected", name)
            if study != asked.study:
                others[name] = old.pop(name)
    if asked.update and not asked.files:
        lines = sorted((others | new).values())
        DIGESTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return compared(old, new)


if __name__ == "__main__":
    sys.exit(main())
