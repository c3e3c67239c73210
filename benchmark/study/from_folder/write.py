"""Writing a folder study: its name, its two files, and a check that the suite accepts what was
written."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError
from benchmark.core.files import write_text
from benchmark.study import Study, load_study, study_names
from benchmark.study.format import LABEL
from benchmark.study.from_folder.documents import recipe_text, study_text
from benchmark.study.from_folder.look import Look
from benchmark.study.from_folder.network import Network
from benchmark.study.from_folder.settings import Settings

COMMAND = "python -m benchmark folder init"
LEAST_MINUTES = {False: 30, True: 120}  # of a run, by whether the network is pretrained


@dataclass(frozen=True)
class Written:
    """The files of a study, and the study as it loads."""

    study_path: Path
    recipe_path: Path
    study: Study


def study_name(root: Path, asked: str | None) -> str:
    """Returns the name of the study: ``asked``, or the folder's with other characters than A-Z a-z
    0-9 . - as _."""
    if asked is None:
        plain = re.sub(r"[^A-Za-z0-9.-]+", "_", root.name).strip("_.-")
        name = plain or "images"
        # a name that is taken by a shipped study would mix the results of two studies
        return f"{name}_images" if name in study_names() else name
    problems = []
    if not re.match(LABEL, asked):
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
    """Writes ``out/NAME.yaml`` and ``out/recipes/NAME.yaml``; raises ConfigError when they are
    there already."""
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
    """Returns how long one run reads and decodes images, in one process: training, and its
    evaluations."""
    evaluations = math.ceil(chosen.epochs / chosen.every)
    images = chosen.epochs * look.images + evaluations * look.counts["test"]["images"]
    return images * look.seconds / 60
