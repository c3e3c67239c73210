"""The manifest of a field: what the runs in its two tables are of, so that others can go on.

A field is a folder that travels: the manifest, the tables of trials and final runs, and of features
some committed rows. A manifest from elsewhere is checked before anything of it is used.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field

from benchmark.core.documents import MAX_BYTES, read_document
from benchmark.core.errors import ConfigError, Problem, failing
from benchmark.core.files import check_regular
from benchmark.core.options import build, option, stated
from benchmark.core.paths import public
from benchmark.datasets.features import Identity
from benchmark.datasets.io.arrays import UNPACKED
from benchmark.losses.catalogue import load_catalogue
from benchmark.study.data_files import FINAL, MANIFEST, TRIALS
from benchmark.study.model import Label, References, Study, StudyFile
from benchmark.study.part import study_text
from benchmark.study.trials import varied_options

VERSION = 1
ROWS = "rows.npz"  # the committed rows of features
FEATURES = "features.npz"  # all of them, if the field has them
TABLES = tuple(f"{kind}/{name}.csv" for kind in (TRIALS, FINAL) for name in ("runs", "scores"))
GIVEN = ("file", "labels")  # parameters of features that are not the same elsewhere
# What a field from elsewhere does not name: a path, and weights that no installed package holds.
PATH = r"[/\\]|\.\."
CHECKPOINT = r'checkpoint\\*": \W*(?!package:|null[,}])\w'
UNSTATED = "unstated"
Digest = Annotated[str, Field(pattern="^[0-9a-f]{16,64}$")]
Short = Annotated[str, Field(max_length=200)]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of ``field.json``."""

    version: int = option(at_least=1, at_most=VERSION, help="of this format")
    licence: Short = option(help="under which the field may be used")
    study: dict[str, Any] = option(help="the study of the trials: settings, losses, seeds, rules")
    recipes: dict[Label, dict[str, Any]] = option(help="recipe files of the study")
    ranges: dict[Label, dict[str, dict[str, Any]]] = option(
        min_length=1, help="loss -> section.option -> range that its trials were drawn from"
    )
    data: dict[Label, Digest] = option(min_length=1, help="dataset -> digest of its contents")
    features: Identity | None = option(help="what features are known by; null: no features")
    made_by: dict[str, list[Short]] = option(help="code versions, and kinds of machines")
    files: dict[str, Digest] = option(help="file of the field -> SHA-256")
    digest: Digest = option(help="of all above")

    @property
    def file(self) -> StudyFile:
        """The study of the trials, as its file has it."""
        return build(StudyFile, self.study, f"{MANIFEST}, study")


def content_digest(content: Mapping[str, Any]) -> str:
    """Return the digest of a manifest's content, without the digest that it has."""
    others = {key: value for key, value in content.items() if key != "digest"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def study_content(study: Study) -> dict[str, Any]:
    """Return the file of a study with rules, without what belongs to one machine or repository."""
    assert study.trials is not None
    written = replace(study, blocks=study.trials.blocks, references=References())
    content: dict[str, Any] = public(yaml.safe_load(study_text(written)))
    for dataset in (each for block in content["blocks"] for each in block["datasets"]):
        if dataset["name"] == "features":
            for name in GIVEN:
                dataset["params"].pop(name, None)
    rules = study.trials
    content["rules"] = {
        "trials": [*rules.budgets],
        "folds": rules.folds,
        "final_seeds": len(rules.final_seeds),
    }
    return content


def recipe_contents(study: Study) -> dict[str, Any]:
    """Return the recipe files of a study by name, each with what it extends."""
    contents = {}
    for block in study.blocks:
        content = public(stated(block.file))
        for name in ("extends", "sources"):  # of files that stay behind
            del content[name]
        contents[block.recipe_name] = content
    return contents


def ranges_of(study: Study) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the range of each option that trials draw, by loss."""
    catalogue = load_catalogue()
    ranges: dict[str, dict[str, dict[str, Any]]] = {}
    for block in study.trials.blocks if study.trials else ():
        for loss in block.losses:
            of_loss = ranges.setdefault(loss.label, {})
            for each in varied_options(block, loss, catalogue[loss.name].config):
                of_loss[f"{each.section}.{each.name}"] = dict(each.search)
    return ranges


def range_problems(manifest: Manifest, study: Study) -> Iterator[str]:
    """Yield the ranges of optimizer, sampler and known losses that are not those of the field."""
    some = next(iter(manifest.ranges.values()))
    for loss, ranges in ranges_of(study).items():
        known = manifest.ranges.get(loss, some)
        for key in sorted(known.keys() & ranges.keys()):
            is_own = known is some and key.startswith("losses.")
            if known[key] != ranges[key] and not is_own:
                yield f"trials of {loss} draw {key} from {ranges[key]}, not {known[key]}"


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a field; raise one ConfigError with all that is wrong with it.

    The files that it names are looked at as well: they lie in the folder and have their digests.
    """
    document = read_document(folder / MANIFEST)
    source = str(document.path)
    try:
        manifest = build(Manifest, document.data, source)
        file = manifest.file
    except ConfigError as error:
        raise ConfigError(source, map(document.locate, error.problems)) from error
    names = [choice.name for entry in file.entries for choice in entry.choices]
    of_features = names == ["features"]
    blocks = json.dumps(manifest.study["blocks"])
    weights = json.dumps([blocks, manifest.recipes])
    problems = failing(
        (
            manifest.digest != content_digest(document.data),
            "digest",
            "is not that of the content, which was changed",
        ),
        (file.rules is None, "study.rules", "none are given, and a field has trials"),
        (re.search(PATH, blocks), "study.blocks", "names a path"),
        (re.search(CHECKPOINT, weights), "recipes", "names a file of weights of its own"),
        (
            of_features != bool(manifest.features) or (of_features < ("features" in names)),
            "features",
            "must be given if the one dataset is 'features', else null",
        ),
    )
    problems += file_problems(manifest, folder)
    if problems:
        raise ConfigError(source, map(document.locate, problems))
    return manifest


def file_problems(manifest: Manifest, folder: Path) -> Iterator[Problem]:
    """Yield the files of a field that are missing, strange, outside or not as they were."""
    needed = {*TABLES} | ({ROWS} if manifest.features else set())
    given = {*manifest.files}
    if given - {FEATURES} != needed or (FEATURES in given and not manifest.features):
        yield Problem(f"must be {', '.join(sorted(needed))}", "files")
        return
    for name, digest in manifest.files.items():
        path = folder / name
        key = f"files.{name}"
        if not path.resolve().is_relative_to(folder.resolve()):
            yield Problem("leads out of the folder", key)
            continue
        check_regular(path, UNPACKED if name == FEATURES else MAX_BYTES)
        if not path.is_file() or file_digest(path) != digest:
            yield Problem("is missing, or not the file that was frozen", key)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
