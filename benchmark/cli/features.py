"""``python -m benchmark features``: heads on features of a network, without its images."""

from pathlib import Path
from typing import Any

from typer import Argument, Option, Typer

from benchmark.cli import MAX_SEED, app, echo, folder_to_write, parse_pairs
from benchmark.cli.own import name_of

group = Typer(no_args_is_help=True, help="Heads on features of a network of yours.")
app.add_typer(group, name="features")


@group.command()
def init(
    features: Path = Argument(help="features: .npz, .npy, .safetensors or .pt"),
    labels: Path | None = Argument(None, help="their labels, and more: .csv, .tsv, or as above"),
    key: list[str] | None = Option(
        None,
        metavar="WHAT=NAME",
        help="name in the files of embeddings, labels, split, query, gallery, categories or names",
    ),
    name: str | None = Option(None, help="name of the study; default: that of the file"),
    out: Path = Option(".", help="folder for the study file", callback=folder_to_write),
    split_seed: int = Option(
        0, help="seed of the split by classes, if none is given", min=0, max=MAX_SEED
    ),
    min_images: int = Option(1, help="leave out classes with fewer rows", min=1, max=10**9),
    equal_rows: str = Option("refuse", help="rows that test and equal one that trains: or keep"),
    seeds: int | None = Option(None, help="number of seeds", min=1, max=1_000),
    force: bool = Option(False, "--force", help="replace files of the same name"),
) -> None:
    """Write a study of heads on your features.

    The files are read as 'score' reads them; look at the study, then run it.

    Example: python -m benchmark features init features.npz

    Example: python -m benchmark features init features.npy labels.csv
    """
    from benchmark.datasets import loader_of
    from benchmark.datasets.io.embeddings import ROLES, SPLIT
    from benchmark.study.own import feature_settings, write_study

    given: dict[str, Any] = {
        "file": str(features.resolve()),
        "labels": labels and str(labels.resolve()),
        "keys": parse_pairs("--key", key or [], [*ROLES, SPLIT]),
        "split_seed": split_seed,
        "min_images": min_images,
        "equal_rows": equal_rows,
    }
    usual = {"split_seed": 0, "min_images": 1, "equal_rows": "refuse"}
    params = {name: value for name, value in given.items() if value and value != usual.get(name)}
    loader: Any = loader_of("features", params)
    dataset = loader.load()
    settings = feature_settings(dataset.train, dataset.counts["test"]["images"], seeds)
    settings |= {"name": name_of(name, features.stem, "features"), "params": params}
    settings |= {"source": features.name, "split": loader.split}
    settings |= {"counts": dataset.counts, "train": dataset.train}
    echo(write_study("features", out, force, **settings))
