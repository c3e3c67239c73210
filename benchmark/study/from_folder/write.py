"""The two files of a folder study: their text, with comments for the person who changes them, their
names, and a check that the suite accepts what was written."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError
from benchmark.core.files import write_text
from benchmark.study import Study, load_study, study_names
from benchmark.study.format import LABEL
from benchmark.study.from_folder.look import Look, Network
from benchmark.study.from_folder.settings import LOSSES, Settings

BASELINE = "triplet_semihard"
MARGIN = 1.14  # test images are resized to this multiple of the side, and their middle is taken


def study_text(
    name: str,
    params: Mapping[str, Any],
    look: Look,
    network: Network,
    chosen: Settings,
    gpus: int,
    minutes: int,
) -> str:
    """Return the study file."""
    losses = "\n".join(f"      - {loss}" for loss in LOSSES)
    metrics = ", ".join([f"recall_at_{chosen.recall_at[0]}", "map_at_r", "map"])
    memory = 8000 if gpus else 4000 if network.pretrained else 2000
    return f"""\
# Written by 'python -m benchmark folder init'; yours to change.
# Every key: docs/architecture.md, "Study files".
study: {_quoted(name)}
title: {_quoted(f"Losses on {Path(str(params['root'])).name}")}
question: {_quoted(_question(look, network))}
seeds: {_listed(chosen.seeds)}
blocks:
  - name: main
    datasets:
      - name: folder
        label: {_quoted(name)}
        params: {json.dumps(dict(params), ensure_ascii=False)}
    recipe: {_quoted(name)}        # recipes/{name}.yaml beside this file
    losses:            # any file of benchmark/losses or of BENCHMARK_PLUGINS
{losses}
    batch_sizes: {_listed(chosen.batch_sizes)}    # multiples of the recipe's samples_per_class
metrics: [{metrics}]
comparison:
  baseline: {BASELINE}
  ablation: [smooth_ap, sup_ap, roadmap]
resources: {{gpus: {gpus}, mem_mb: {memory}, minutes: {minutes}}}
"""


def recipe_text(look: Look, network: Network, chosen: Settings, gpus: int) -> str:
    """Return the recipe file."""
    rate = "{name: adamw, lr: 1.0e-4, head_lr_multiplier: 10.0, weight_decay: 1.0e-4}"
    if not network.pretrained:
        rate = "{name: adamw, lr: 4.0e-3, weight_decay: 1.0e-4}"
    model = [
        f"backbone: {network.backbone}",
        f"pretrained: {'true' if network.pretrained else 'false'}",
    ]
    if network.checkpoint:
        model.append(f"checkpoint: {_quoted(network.checkpoint)}")
    model += [f"channels: {chosen.channels}", "embedding_dim: 128"]
    if network.pretrained:
        model.append("freeze_batch_norm: true")
    # one process a run decodes its images, unless a GPU waits for them
    workers, threads = (4, 4) if gpus else (0, 1)
    batch = f"{{epochs: {chosen.epochs}, threads: {threads}}}"
    if network.pretrained and not gpus:
        batch = (
            f"{{epochs: {chosen.epochs}, threads: {threads}, micro_batch: 16}}    # same "
            "numbers, less memory"
        )
    model_lines = "\n".join(f"  {line}" for line in model)
    return f"""\
label: {network.label}        # name of the network in paths and tables
source: >-
  defaults of 'folder init' for {look.images:,} training images; nothing in it was chosen by looking
  at scores
model:
{model_lines}
input:
  augmentation: crop_flip
  image_size: {chosen.side}
  resize: {math.ceil(chosen.side * MARGIN)}
  keep_aspect: true
  crop_area: [0.4, 1.0]
  flip: true           # false where a mirrored image belongs to another class
  mean: {_listed(network.mean if chosen.channels > 1 else network.mean[:1])}
  std: {_listed(network.std if chosen.channels > 1 else network.std[:1])}
  workers: {workers}
optimizer: {rate}
schedule: {{name: one_cycle}}
sampler:
  name: m_per_class
  params: {{samples_per_class: {chosen.samples}}}
training: {batch}
evaluation: {{every: {chosen.every}, recall_at: {_listed(chosen.recall_at)}}}
"""


def _question(look: Look, network: Network) -> str:
    train, test = look.counts["train"], look.counts["test"]
    words = (
        f"Which loss retrieves best on {test['classes']:,} classes that training never saw "
        f"({test['images']:,} "
        f"images), after training on {train['classes']:,} others ({train['images']:,} images)?"
    )
    left = look.counts.get("left out")
    if left:
        words += (
            f" {left['classes']:,} classes with too few images ({left['images']:,}) are left out."
        )
    if network.pretrained:
        return f"{words} The network, {network.backbone}, starts from {network.weights}."
    return (
        f"{words} The network, {network.backbone}, is small and trained from scratch: its scores "
        "compare the losses with each other, and are far below what a pretrained network reaches."
    )


def _quoted(text: str) -> str:
    """Return ``text`` as a YAML scalar in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _listed(values: Iterable[float]) -> str:
    return f"[{', '.join(map(str, values))}]"


COMMAND = "python -m benchmark folder init"
LONGEST_NAME = 80  # letters, as in LABEL
LEAST_MINUTES = {False: 30, True: 120}  # of a run, by whether the network is pretrained


@dataclass(frozen=True)
class Written:
    """The files of a study, and the study as it loads."""

    study_path: Path
    recipe_path: Path
    study: Study


def study_name(root: Path, asked: str | None) -> str:
    """Return the study's name: ``asked``, or the folder's; signs but A-Z a-z 0-9 . - become _."""
    if asked is None:
        plain = re.sub(r"[^A-Za-z0-9.-]+", "_", root.name).strip("_.-")
        name = plain[:LONGEST_NAME] or "images"
        # a name that is taken by a shipped study would mix the results of two studies
        return f"{name}_images" if name in study_names() else name
    problems = []
    if not re.fullmatch(LABEL, asked):
        problems.append(
            f"'{asked}' (allowed: letters, digits and _ . + - , a letter or digit first)"
        )
    elif asked in study_names():
        problems.append(f"'{asked}' is a study of the repository; choose another name")
    if problems:
        raise ConfigError("--name", problems)
    return asked


def write_study(
    name: str,
    params: Mapping[str, Any],
    look: Look,
    network: Network,
    chosen: Settings,
    *,
    gpus: int,
    out: Path,
    force: bool,
) -> Written:
    """Write ``out/NAME.yaml`` and ``out/recipes/NAME.yaml``; raise ConfigError if they exist."""
    study_path, recipe_path = out / f"{name}.yaml", out / "recipes" / f"{name}.yaml"
    existing = [path for path in (study_path, recipe_path) if path.exists()]
    if existing and not force:
        raise ConfigError(
            COMMAND,
            [
                f"{path} exists; --force replaces it, --name writes another study"
                for path in existing
            ],
        )
    minutes = max(LEAST_MINUTES[network.pretrained], 10 * math.ceil(reading_minutes(look, chosen)))
    write_text(recipe_path, recipe_text(look, network, chosen, gpus))
    write_text(study_path, study_text(name, params, look, network, chosen, gpus, minutes))
    return Written(study_path, recipe_path, load_study(str(study_path)))


def reading_minutes(look: Look, chosen: Settings) -> float:
    """Return how long one process of a run reads images, for training and evaluations."""
    evaluations = math.ceil(chosen.epochs / chosen.every)
    images = chosen.epochs * look.images + evaluations * look.counts["test"]["images"]
    return images * look.seconds / 60
