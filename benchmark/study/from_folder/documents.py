"""The study file and the recipe file of a folder study, as text with comments for the person who
will change them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmark.study.from_folder.look import Look
from benchmark.study.from_folder.network import Network
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
    """Returns the study file."""
    losses = "\n".join(f"      - {loss}" for loss in LOSSES)
    metrics = ", ".join([f"recall_at_{chosen.recall_at[0]}", "map_at_r", "map"])
    memory = 8000 if gpus else 4000 if network.pretrained else 2000
    return f"""\
# Written by 'python -m benchmark folder init'; yours to change.
# Every key: docs/architecture.md, "Study files".
study: {name}
title: {_quoted(f"Losses on {Path(str(params['root'])).name}")}
question: {_quoted(_question(look, network))}
seeds: {_listed(chosen.seeds)}
blocks:
  - name: main
    datasets:
      - name: folder
        label: {name}
        params: {json.dumps(dict(params), ensure_ascii=False)}
    recipe: {name}        # recipes/{name}.yaml beside this file
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
    """Returns the recipe file."""
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
        "compare the losses "
        "with each other, and are far below what a pretrained network reaches."
    )


def _quoted(text: str) -> str:
    """Returns ``text`` as a YAML scalar in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _listed(values: Iterable[float]) -> str:
    return f"[{', '.join(map(str, values))}]"
