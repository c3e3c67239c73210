"""``python -m benchmark features``: heads on features of a network, without its images."""

from pathlib import Path
from typing import Any

from typer import Argument, Option, Typer

from benchmark.cli import (
    MAX_THREADS,
    Verb,
    app,
    echo,
    file_to_write,
    folder_to_write,
    parse_pairs,
)
from benchmark.cli.data import Name, Params, Root, params_of
from benchmark.cli.own import MAX_SIDE, name_of

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
    param: Params = None,
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

    params = params_of("features", None, param) | {"file": str(features.resolve())}
    if labels is not None:
        params["labels"] = str(labels.resolve())
    if key:
        params["keys"] = parse_pairs("--key", key, [*ROLES, SPLIT])
    loader: Any = loader_of("features", params)
    dataset = loader.load()
    settings = feature_settings(dataset.train, dataset.counts["test"]["images"], seeds)
    settings |= {"name": name_of(name, features.stem, "features"), "params": params}
    settings |= {"source": features.name, "split": loader.split}
    settings |= {"counts": dataset.counts, "train": dataset.train}
    echo(write_study("features", out, force, **settings))


@group.command(cls=Verb)
def extract(
    dataset: Name,
    out: Path = Option(..., metavar="FILE.npz", help="file to write", callback=file_to_write),
    root: Root = None,
    param: Params = None,
    backbone: str | None = Option(
        None, help="timm name with its weight tag; default: the packaged EfficientNet-Lite0"
    ),
    checkpoint: Path | None = Option(
        None, help="file with the weights of --backbone", exists=True, dir_okay=False
    ),
    image_size: int | None = Option(
        None, help="side of the input; default: the network's own", min=32, max=MAX_SIDE
    ),
    protocol: str | None = Option(None, help="protocol that tests; default: the first"),
    float16: bool = Option(False, "--float16", help="half of the bytes"),
    threads: int = Option(1, help="CPU threads", min=1, max=MAX_THREADS),
) -> None:
    """Write the features that a network gives the images of a dataset.

    Stopped at any moment, the same command goes on.

    Example: python -m benchmark features extract glyphs_1k --out glyphs.npz --image-size 64
    """
    import json

    from benchmark.core.environment import choose_kernels

    choose_kernels()
    import numpy as np

    from benchmark.core.code_version import code_version
    from benchmark.core.files import replacing
    from benchmark.core.recipe import ModelConfig, Recipe, SamplerConfig, TrainingConfig
    from benchmark.datasets import load_dataset
    from benchmark.models import create_model
    from benchmark.models.backbone import own_input
    from benchmark.study.own import network_of
    from benchmark.training.features import FrozenFeatures, extracted
    from benchmark.training.numerics import prepare_numerics

    network = network_of(backbone, checkpoint)
    model = ModelConfig(
        backbone=network.backbone,
        pretrained=bool(network.weights),
        checkpoint=network.checkpoint,
        pooling="native",
        freeze_backbone=True,
    )
    view = own_input(network.backbone, image_size)
    training = TrainingConfig(threads=threads)
    recipe = Recipe(
        model=model, sampler=SamplerConfig(name="random"), input=view, training=training
    )
    images = load_dataset(dataset, params_of(dataset, root, param))
    taken = create_model(model, 0).take_backbone()
    device = prepare_numerics(training)
    made = FrozenFeatures(taken.to(device), images.images_fingerprint, recipe, device, echo)
    arrays = extracted(images, protocol, made)
    if float16:
        arrays["embeddings"] = arrays["embeddings"].astype(np.float16)
    facts = {**made.decided_by, "dataset": dataset, "code_version": code_version()}
    with replacing(out) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **arrays, made_by=np.array(json.dumps(facts)))
    rows, width = arrays["embeddings"].shape
    echo(f"wrote {out}: {rows:,} rows of {width:,} numbers")
    echo(f"next: python -m benchmark features init {out}")
