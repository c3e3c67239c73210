"""Readers of what people write: studies, recipes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import yaml
from paper_folders import FILES, METHODS, load_paper, write_paper

from benchmark.study import load_study
from benchmark.study.documents import read_document
from benchmark.study.format import ROOT
from benchmark.study.grid import expand
from hostile.targets import TEXT, YAML, Target

CONFIG = ROOT / "workflow" / "config"
PAPER_FILES = FILES | {"paper.yaml": FILES["paper.yaml"] + METHODS}


def small_study(**changes: object) -> dict[str, object]:
    """Return the content of a study of four runs."""
    return {
        "study": "x",
        "title": "Four runs",
        "seeds": [0, 1],
        "losses": {"warm": {"loss": "smooth_ap", "tau": 0.1}},
        "blocks": [
            {
                "name": "main",
                "datasets": [{"name": "glyphs_tiny", "label": "tiny", "params": {}}],
                "recipe": "glyphs_smoke",
                "losses": ["warm", "roadmap"],
                "batch_sizes": [32],
                "option": "fast",
                "override": {"training": {"epochs": 1}},
            }
        ],
        "metrics": ["recall_at_1"],
        "comparison": {"baseline": "warm", "ablation": [], "alpha": 0.05},
        "tables": ["comparison"],
        "figures": [],
        "references": {"published": [], "frozen": None},
        "resources": {"gpus": 0, "mem_mb": 100, "minutes": 3},
        **changes,
    }


def read_study(folder: Path, content: bytes) -> None:
    """Load a study and write out its grid."""
    path = folder / "x.yaml"
    path.write_bytes(content)
    for run in expand(load_study(path)).values():
        assert run.spec.folder.parts[0] == "runs"
        assert ".." not in run.spec.folder.parts


def read_yaml(folder: Path, content: bytes) -> None:
    """Read a document alone, which is much faster than a study."""
    (folder / "x.yaml").write_bytes(content)
    read_document(folder / "x.yaml")


def study_seeds() -> Mapping[str, bytes]:
    """Return a small study and the shipped ones, under the name of the file."""
    seeds = {"small": yaml.safe_dump(small_study()).encode()}
    for path in (CONFIG / "smoke.yaml", CONFIG / "embedded.yaml"):
        text = path.read_text(encoding="utf-8")
        seeds[path.stem] = text.replace(f"study: {path.stem}", "study: x").encode()
    return seeds


def read_recipe(folder: Path, content: bytes) -> None:
    """Load a study whose recipe this is."""
    (folder / "recipes" / "mine.yaml").write_bytes(content)
    expand(load_study(folder / "x.yaml"))


def _study_of_the_recipe(folder: Path) -> None:
    (folder / "recipes").mkdir()
    study = small_study()
    study["blocks"][0]["recipe"] = "mine"  # type: ignore[index]
    (folder / "x.yaml").write_text(yaml.safe_dump(study))


def read_base(folder: Path, content: bytes) -> None:
    """Load a study whose recipe lies over this one."""
    (folder / "recipes" / "base.yaml").write_bytes(content)
    expand(load_study(folder / "x.yaml"))


def _recipe_over_base(folder: Path) -> None:
    _study_of_the_recipe(folder)
    text = "extends: base\noptimizer: {lr: 0.01}\nsources: {optimizer.lr: a guess}\n"
    (folder / "recipes" / "mine.yaml").write_text(text)


def base_seeds() -> Mapping[str, bytes]:
    """Return a recipe that says where all its values are from."""
    data = yaml.safe_load(recipe_seeds()["glyphs_smoke"])
    data["sources"] = {name: "a guess" for name in data if isinstance(data[name], dict)}
    return {"base": yaml.safe_dump(data).encode()}


def read_paper_file(file: str) -> Callable[[Path, bytes], None]:
    """Return a reader of one file of a paper's folder, through what its numbers and claims say."""

    def read(folder: Path, content: bytes) -> None:
        path = folder / "toy2030" / file
        good = path.read_bytes()
        path.write_bytes(content)
        try:
            paper = load_paper(folder / "toy2030")
        finally:
            path.write_bytes(good)
        for number in paper.numbers:
            assert len(number.text) < 1000
            assert number.rounding >= 0 if number.is_score else True
        assert all(claim.condition for claim in paper.claims)

    return read


def recipe_seeds() -> Mapping[str, bytes]:
    """Return some shipped recipes."""
    names = ("glyphs_smoke", "roadmap_sop_resnet50", "fast_ap_sop_googlenet")
    return {name: (CONFIG / "recipes" / f"{name}.yaml").read_bytes() for name in names}


TARGETS = (
    Target("study", read_study, study_seeds, YAML),
    Target("yaml", read_yaml, study_seeds, YAML),
    Target("recipe", read_recipe, recipe_seeds, YAML, _study_of_the_recipe),
    Target("recipe below another", read_base, base_seeds, YAML, _recipe_over_base),
    *(
        Target(
            f"paper {file}",
            read_paper_file(file),
            lambda file=file, text=text: {file: text.encode()},
            YAML if file.endswith(".yaml") else TEXT,
            write_paper,
            0.3,
        )
        for file, text in PAPER_FILES.items()
    ),
)
