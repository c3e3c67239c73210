"""``python -m benchmark folder``: the benchmark on your own images, a folder for each class."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmark.cli import app, echo, folder_to_write

MAX_SIDE = 10_000  # pixels, as in recipes
# What the dataset's errors advise to set, as options of this command.
OPTIONS = {"set min_images: 2": "--min-images 2", "set categories: true": "--categories"}
group = typer.Typer(no_args_is_help=True, help="The benchmark on your own images.")
app.add_typer(group, name="folder")


@group.callback()
def folder() -> None:
    """Keeps ``init`` a verb of its own while it is the only one."""


@group.command()
def init(
    root: Annotated[Path, typer.Argument(help="directory with a folder of images for each class")],
    name: Annotated[
        str | None, typer.Option(help="name of the study; default: that of the directory")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="folder for the study file", callback=folder_to_write)
    ] = Path("."),
    categories: Annotated[
        bool, typer.Option("--categories", help="the directory has category/class/image")
    ] = False,
    min_images: Annotated[
        int, typer.Option(help="leave out classes with fewer images", min=1, max=10**9)
    ] = 1,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="network: a timm name with its weight tag (resnet50.tv_in1k), or 'scratch'; "
            "default: the packaged EfficientNet-Lite0 where it is installed, else scratch"
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="file with the weights of --backbone", exists=True, dir_okay=False),
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(help="side of the network's input, pixels", min=32, max=MAX_SIDE)
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="number of seeds", min=1, max=1_000)] = None,
    gpus: Annotated[int, typer.Option(help="GPUs of a run", min=0, max=1)] = 0,
    force: Annotated[bool, typer.Option("--force", help="replace files of the same name")] = False,
) -> None:
    """Write a study of your own images.

    Its settings fit the images; look at it, then run it.

    Example: python -m benchmark folder init /data/flowers
    """
    from benchmark.core.errors import DataError
    from benchmark.runs.plan import duration
    from benchmark.study.own import look, network_of, settings, write_study

    root, params = root.resolve(), dict[str, Any](root=str(root.resolve()))
    params |= {"categories": True} if categories else {}
    params |= {"min_images": min_images} if min_images > 1 else {}
    study, network = _name(root, name), network_of(backbone, checkpoint)
    try:
        found = look(params)
    except DataError as error:
        options = [option for advice, option in OPTIONS.items() if advice in str(error)]
        raise DataError("\nwith this command: ".join([str(error), *options])) from error
    chosen = settings(found, network, gpus=gpus, seeds=seeds, side=image_size)
    chosen |= {"name": study, "params": params, "folder": root.name}
    chosen["reading"] = duration(chosen["reading_seconds"])
    echo(write_study(out, force, found=found, network=network, **chosen))


def _name(root: Path, asked: str | None) -> str:
    """Return the study's name: ``asked``, or the folder's; signs but A-Z a-z 0-9 . - become _."""
    from benchmark.core.errors import ConfigError
    from benchmark.study import study_names
    from benchmark.study.model import LABEL

    name = re.sub(r"[^A-Za-z0-9.-]+", "_", root.name).strip("_.-")[:80] or "images"
    name = name if asked is None else asked
    # a name that is taken by a shipped study would mix the results of two studies
    taken = name in study_names()
    if asked is not None and (taken or not re.fullmatch(LABEL, asked)):
        words = "letters, digits and _ . + - , a letter or digit first; no study of the repository"
        raise ConfigError("--name", [f"'{asked}' (allowed: {words})"])
    return f"{name}_images" if taken else name
