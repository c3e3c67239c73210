"""What the networks of a study were pretrained on, and whether that may hold the test images."""

import csv
from collections.abc import Iterator

from benchmark.core.recipe import ModelConfig
from benchmark.report.inputs import Inputs
from benchmark.report.labels import dataset_label
from benchmark.report.table import NothingToShow, Section, Table, TableCell, text_column
from benchmark.report.tables import TABLES
from benchmark.study.data_files import PACKAGE, PRETRAINING

# One row for each kind of weights: ``tags`` are words of timm's weight tags, a column named like a
# dataset says whether they saw its test images, ``others`` the same of all other datasets.
FACTS = PACKAGE / PRETRAINING
PACKAGED = "in1k"  # of the weights that come as a Python package
DRAWN = "no: drawn by this suite"


@TABLES.register("pretraining", display="What networks were pretrained on")
def build(inputs: Inputs) -> Table:
    """Return a row for each pretrained network and dataset of the study."""
    with open(FACTS, encoding="utf-8", newline="") as stream:
        facts = {tag: row for row in csv.DictReader(stream) for tag in row["tags"].split("|")}
    rows: dict[tuple[str, str], list[TableCell]] = {}
    for block in inputs.study.blocks:
        model = block.recipe.model
        if not model.pretrained:
            continue
        known = next((facts[word] for word in _words(model) if word in facts), {})
        for dataset in block.datasets:
            name = dataset.params.get("of", dataset.name)
            held = known.get(name, known.get("others", "not known"))
            weights = [model.backbone, dataset_label(dataset.label, block.setting.label)]
            cells = [*weights, known.get("pretrained_on", "not known")]
            cells += [DRAWN if "glyphs" in name else held, known.get("source", "none")]
            rows[(model.backbone, dataset.label)] = [TableCell(cell) for cell in cells]
    if not rows:
        raise NothingToShow("no network of this study is pretrained")
    columns = [text_column("Network"), text_column("Dataset · setting")]
    columns += [text_column("Pretrained on"), text_column("May hold test images")]
    columns.append(text_column("Source"))
    caption = (
        "What each network saw before this study. Where that may contain test images or classes, "
        "its scores say less about unseen classes than those of a network that saw none."
    )
    title = "What networks were pretrained on"
    return Table(title, caption, columns, [Section("", [*rows.values()])])


def _words(model: ModelConfig) -> Iterator[str]:
    """Yield the words of the weight tag that may say what a network was pretrained on."""
    if model.checkpoint is not None:
        if model.checkpoint.startswith("package:"):
            yield PACKAGED
        return
    tag = model.backbone.partition(".")[2]
    yield tag
    # what was pretrained on first comes before what it was tuned on: fb_in22k_ft_in1k
    yield from tag.split("_")
