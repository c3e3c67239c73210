"""The whole of ``data prepare``: sources into the root, the dataset's index, its counts, a packed copy, a record."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from benchmark.core.errors import ConfigError, DataError, RunError
from benchmark.core.files import write_json
from benchmark.core.options import build
from benchmark.datasets import DATASETS, load_dataset
from benchmark.datasets.base import Dataset, DatasetLoader
from benchmark.datasets.index import IndexedLoader
from benchmark.datasets.prepare.counts import counts_table, differences
from benchmark.datasets.prepare.pack import pack
from benchmark.datasets.prepare.place import PLACING, continue_placing, notes
from benchmark.datasets.prepare.sources import DOWNLOADS, Bringer, Source

RECORD = "prepared.json"
LOCK = ".prepare.lock"


def options_of(loader: type[DatasetLoader]) -> set[str]:
    """Returns the names of a dataset's parameters."""
    return {field.name for field in dataclasses.fields(loader.Config)}


def load_whatever_counts(name: str, params: Mapping[str, Any]) -> Dataset:
    """Returns a dataset whose counts are still to be compared with the published ones."""
    more = {"allow_counts": True} if "allow_counts" in options_of(DATASETS[name].target) else {}
    return load_dataset(name, {**params, **more})


def published_counts(name: str, params: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Returns the counts that a dataset with these parameters should have, {} where none are published."""
    loader = DATASETS[name].target
    return loader(build(loader.Config, params, f"dataset '{name}'")).expected_counts()


def prepare(
    name: str,
    sources: Sequence[Source] = (),
    *,
    params: Mapping[str, Any],
    digests: Mapping[str, Mapping[str, str]] | None = None,
    link: bool = False,
    side: int | None = None,
    compressed: bool = True,
    workers: int = 1,
    allow_counts: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Makes the root of dataset ``name`` hold it, checked, and writes prepared.json there at the very end.

    sources       what to bring into the root; none when it is unpacked there already
    params        of the dataset, its root among them
    digests       {file name of a source: {"md5" or "sha256": hex}}
    side          shorter side of the packed copy to write; None writes none
    compressed    whether the packed copy holds JPEG and PNG, or plain pixels
    allow_counts  whether other counts than the published ones are accepted

    Raises ConfigError, DataError or RunError with one message; started again, it continues.
    """
    loader = DATASETS[name].target
    _check_request(name, loader, params, sources, side)
    root = Path(params["root"])
    _make(root)
    with _alone(root):
        if continue_placing(root):
            say("moved the files of an interrupted run into place")
        bringer = Bringer(name, loader.archives, root, say)
        for source in sources:
            bringer.bring(source, (digests or {}).get(source.file, {}), link)
        dataset = load_whatever_counts(name, params)
        expected = published_counts(name, params)
        say(counts_table(dataset.counts, expected))
        wrong = differences(dataset.counts, expected)
        if wrong and not allow_counts:
            raise DataError(
                f"{root} is not the published '{name}': {'; '.join(wrong)}; get the published files, or add "
                "--allow-counts to go on with these"
            )
        if side is not None:
            table = loader(build(loader.Config, params, f"dataset '{name}'")).table()
            paths = table["path"].unique().tolist()
            say(f"packed: {pack(root, side, paths, workers, compressed=compressed)}")
        write_json(root / RECORD, _record(root, dataset))
        say(f"prepared: {root / RECORD}")
        if (root / DOWNLOADS).is_dir():
            say(f"{root / DOWNLOADS} is no longer needed")


def read_record(root: Path) -> dict[str, Any]:
    """Returns what prepared.json says, {} without one; raises DataError when a run was interrupted while moving."""
    if (root / PLACING).is_dir():
        raise DataError(
            f"{root} is half-filled: 'data prepare' was interrupted there; start it again"
        )
    try:
        record = json.loads((root / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _check_request(
    name: str,
    loader: type[DatasetLoader],
    params: Mapping[str, Any],
    sources: Sequence[Source],
    side: int | None,
) -> None:
    problems = []
    options = options_of(loader)
    if "root" not in options:
        problems.append(f"'{name}' needs no files; there is nothing to prepare")
    elif params.get("root") is None:
        problems.append("--root is missing: the directory of the dataset")
    elif sources and not loader.archives:
        problems.append(
            f"'{name}' is not published as archives; put the images under --root yourself"
        )
    if side is not None and not ("packed" in options and issubclass(loader, IndexedLoader)):
        problems.append(f"'{name}' cannot be read from a packed copy; leave out --pack")
    if problems:
        raise ConfigError("data prepare", problems)


def _make(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
        writable = os.access(root, os.W_OK | os.X_OK)
    except OSError as error:
        raise DataError(f"cannot make {root}: {error.strerror}; choose another --root") from error
    if not writable:
        raise DataError(f"{root} is not writable; choose another --root, or change its permissions")


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    try:
        with FileLock(root / LOCK, timeout=0):
            yield
    except Timeout as error:
        raise RunError(
            f"another 'data prepare' is working in {root}; wait for it, or choose another --root"
        ) from error


def _record(root: Path, dataset: Dataset) -> dict[str, Any]:
    return {
        "schema": 1,
        "dataset": dataset.name,
        "fingerprint": dataset.fingerprint,
        "counts": dataset.counts,
        "sources": notes(root),
    }
