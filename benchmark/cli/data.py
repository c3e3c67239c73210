"""``python -m benchmark data``: list datasets, check one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    data = typer.Typer(no_args_is_help=True, help="List and check datasets.")
    data.command("list")(list_datasets)
    data.command("check")(check)
    app.add_typer(data, name="data")


def list_datasets() -> None:
    """Print the registered datasets."""
    from benchmark.datasets import DATASETS

    for entry in DATASETS:
        typer.echo(f"{entry.name:<14}{entry.target.__doc__.splitlines()[0]}")


def check(
    name: Annotated[str, typer.Argument(help="registered name")],
    root: Annotated[Path | None, typer.Option(help="directory of the dataset, where it needs one")] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="another parameter of the dataset; repeatable")
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="decode every image and list the broken ones")] = False,
) -> None:
    """Print images, classes and categories per split; exit status 0 only if all is right."""
    from benchmark.datasets import load_dataset

    dataset = load_dataset(name, _params(name, [*([] if root is None else [f"root={root}"]), *(param or [])]))
    typer.echo(f"{name}  fingerprint {dataset.fingerprint}")
    typer.echo(f"{'split':<14}{'images':>9}{'classes':>9}{'categories':>12}")
    for split, counts in dataset.counts.items():
        cells = f"{counts['images']:>9,}{counts['classes']:>9,}{counts.get('categories', '-'):>12}"
        typer.echo(f"{split:<14}{cells}")
    if images and _decode_all(dataset):
        raise typer.Exit(1)


def _params(name: str, pairs: list[str]) -> dict[str, object]:
    """Returns KEY=VALUE pairs as parameters of dataset ``name``: text where it takes text, YAML elsewhere."""
    import yaml

    from benchmark.datasets import DATASETS
    from benchmark.options import schema_of

    known = schema_of(DATASETS[name].target.Config)["properties"]
    params: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"'{pair}' is not KEY=VALUE; for example: --param categories=true")
        if key in params:
            raise typer.BadParameter(f"'{key}' is given twice; give it once")
        takes_text = "string" in known.get(key, {}).get("type", ())
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            if not takes_text:
                raise typer.BadParameter(f"'{text}' for '{key}' is not a YAML value") from error
            value = text
        params[key] = text if takes_text and value is not None else value
    return params


def _decode_all(dataset: object) -> int:
    """Prints what is wrong with each broken image; returns how many there are."""
    from tqdm import tqdm

    from benchmark.datasets.files import broken_images

    sets = [dataset.train]
    for protocol in dataset.protocols.values():
        sets += [protocol.query] + ([] if protocol.gallery is None else [protocol.gallery])
    bad = []
    for image_set in sets:
        bad += [line for line in tqdm(broken_images(image_set), total=len(image_set), disable=None) if line]
    for line in bad:
        typer.echo(line)
    typer.echo(f"{len(bad)} broken of {sum(map(len, sets)):,} images")
    return len(bad)
