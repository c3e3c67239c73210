"""The names of losses, metrics, datasets and conditions as people read them."""

from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.metric import display_name
from benchmark.published.schema import GAIN
from benchmark.report.row_types import Placed


def metric_label(name: str) -> str:
    """Return the display name of a metric: "R@1", or "relative gain in mAP@R" (percent)."""
    of = name.removesuffix(GAIN)
    return display_name(of) if of == name else f"relative gain in {display_name(of)}"


def loss_name(name: str) -> str:
    """Return the display name of a registered loss: "SmoothAP"; other names are kept."""
    facts = load_catalogue().get(name)
    return facts.display if facts else name


def dataset_name(label: str) -> str:
    """Return the display name of a registered dataset: "iNaturalist-2018"; others are kept."""
    from benchmark.datasets import DATASETS

    return DATASETS[label].display if label in DATASETS.names() else label


def dataset_label(dataset: str, setting: str = "", split: str = "test") -> str:
    """Return where a number was measured, "Glyphs-1k · test_resnet"; "test" is not named."""
    parts = [dataset_name(dataset), setting, "" if split == "test" else split]
    return " · ".join(part for part in parts if part)


def condition_label(row: Placed) -> str:
    """Return the heading of runs that are compared with each other, of a row with its columns."""
    where = dataset_label(row.dataset, row.setting, getattr(row, "split", "test"))
    return f"{where} · batch size {row.batch_size}"
