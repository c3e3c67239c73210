"""The steps of ``data prepare`` and ``data check``: install, count, decode, pack, record."""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image
from tqdm import tqdm

from benchmark.core.errors import ConfigError, DataError
from benchmark.core.files import alone, write_json
from benchmark.core.options import build
from benchmark.core.paths import os_errors
from benchmark.datasets import DATASETS, load_dataset, published_counts
from benchmark.datasets.base import Dataset, DatasetLoader
from benchmark.datasets.counts import count_differences, counts_table
from benchmark.datasets.index import IndexedLoader
from benchmark.datasets.prepare.install import (
    DOWNLOADS,
    MOVING,
    Installer,
    Source,
    continue_moving,
    read_sources,
)
from benchmark.datasets.prepare.pack import ordered_map, pack

RECORD, LOCK = "prepared.json", ".prepare.lock"


def options_of(loader: type[DatasetLoader]) -> set[str]:
    """Return the names of a dataset's parameters."""
    return {field.name for field in dataclasses.fields(loader.Config)}


def load_with_any_counts(name: str, params: Mapping[str, Any]) -> Dataset:
    """Return a dataset without comparing its counts with the published ones."""
    options = options_of(DATASETS[name].target)
    return load_dataset(name, {**params, **dict.fromkeys(options & {"allow_counts"}, True)})


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
    """Install dataset ``name`` in its root, check it, and at the very end write prepared.json.

    sources       what to install; none when the root holds the dataset already
    params        of the dataset, its root among them
    digests       {file name of a source: {"md5" or "sha256": hex}}
    side          shorter side of the packed copy to write; None writes none
    compressed    whether the packed copy holds JPEG and PNG, or plain pixels
    allow_counts  whether other counts than the published ones are accepted

    Raise ConfigError, DataError or RunError with one message. Started again, it continues.
    """
    loader = DATASETS[name].target
    _check_request(name, loader, params, sources, side)
    root = Path(params["root"])
    with os_errors(f"cannot make {root}", "choose another --root"):
        root.mkdir(parents=True, exist_ok=True)
    busy = f"another 'data prepare' is working in {root}; wait for it, or choose another --root"
    with alone(root / LOCK, busy):
        if continue_moving(root):
            say("moved the files of an interrupted run into place")
        installer = Installer(name, (*loader.archives, *loader.other_archives), root, say)
        for source in sources:
            installer.install(source, (digests or {}).get(source.file, {}), link)
        dataset = load_with_any_counts(name, params)
        expected = published_counts(name, params)
        say(counts_table(dataset.counts, expected))
        differences = count_differences(dataset.counts, expected)
        if differences and not allow_counts:
            raise DataError(
                f"{root} is not the published '{name}': {'; '.join(map(str, differences))}; get "
                "the published files, or add --allow-counts to go on with these"
            )
        if side is not None:
            indexed = loader(build(loader.Config, params, f"dataset '{name}'"))
            paths = indexed.table()["path"].unique().tolist()
            say(f"packed: {pack(root, side, paths, workers, compressed=compressed)}")
        record = {
            "schema": 1,
            "dataset": dataset.name,
            "fingerprint": dataset.fingerprint,
            "counts": dataset.counts,
            "sources": read_sources(root),
        }
        write_json(root / RECORD, record)
        say(f"prepared: {root / RECORD}")
        if (root / DOWNLOADS).is_dir():
            say(f"{root / DOWNLOADS} is no longer needed")


def recorded_sources(root: Path) -> dict[str, str]:
    """Return the digest of each source that prepared.json names, "" without one; {} without it.

    Raise DataError when a run was interrupted while it moved files.
    """
    if (root / MOVING).is_dir():
        raise DataError(
            f"{root} is half-filled: 'data prepare' was interrupted there; start it again"
        )
    if not os.path.exists(root / RECORD):
        return {}
    sources = json.loads((root / RECORD).read_text())["sources"]
    return {file: facts.get("sha256", "") for file, facts in sources.items()}


def broken_images(dataset: Dataset, workers: int) -> tuple[list[str], int]:
    """Decode every image; return the error of each broken one, and the number of images.

    An image of two splits is decoded once.
    """
    sets = dataset.image_sets()
    images: dict[str, tuple[int, int]] = {}  # name -> number of the set, index in it
    for number, image_set in enumerate(sets):
        for index, name in enumerate(image_set.names):
            images.setdefault(name, (number, index))
    decoder = partial(_error_of, [image_set.opener for image_set in sets])
    errors = ordered_map(decoder, list(images.values()), workers)
    bar = tqdm(errors, "decoding", len(images), leave=False, disable=None)
    return [error for error in bar if error is not None], len(images)


def _error_of(openers: list[Callable[[int], Image.Image]], image: tuple[int, int]) -> str | None:
    """Return the error of one image, given by the number of its opener and its own, or None."""
    number, index = image
    try:
        openers[number](index)
    except DataError as error:
        return str(error)
    return None


def _check_request(
    name: str,
    loader: type[DatasetLoader],
    params: Mapping[str, Any],
    sources: Sequence[Source],
    side: int | None,
) -> None:
    problems = []
    options = options_of(loader)
    indexed = issubclass(loader, IndexedLoader)
    if "root" not in options:
        problems.append(f"'{name}' needs no files; there is nothing to prepare")
    elif not (loader.archives or indexed):  # a record of ours would lie among its images
        problems.append(
            f"'{name}' needs no preparing: its images are read where they lie; 'python -m "
            f"benchmark data check {name} --root DIRECTORY --images' looks at them"
        )
    elif params.get("root") is None:
        problems.append("--root is missing: the directory of the dataset")
    names = [source.file for source in sources]
    problems += [
        f"two sources are called {name}; rename one, or download it and give its path"
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    if side is not None and not ("packed" in options and indexed):
        problems.append(f"'{name}' cannot be read from a packed copy; leave out --pack")
    if problems:
        raise ConfigError("data prepare", problems)
