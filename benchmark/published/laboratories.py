"""How far do laboratories differ? Settings that papers trained, or printed, twice."""

import functools
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from benchmark.core.documents import read_document
from benchmark.published.loading import load_papers
from benchmark.published.schema import PublishedNumber
from benchmark.study.data_files import PACKAGE, REPEATED

SAME = ("loss", "dataset", "protocol", "backbone", "batch_size", "metric")


@functools.cache
def repeated_settings() -> Mapping[str, list[list[PublishedNumber]]]:
    """Return the pairs of numbers of one setting, by entry of ``repeated.yaml``."""
    pairs = {}
    papers = load_papers()
    for name, entry in read_document(PACKAGE / REPEATED).data.items():
        settings: dict[tuple[str, ...], list[PublishedNumber]] = defaultdict(list)
        for number in papers.asked(entry["tables"]):
            if number.fits(entry["rows"]):
                settings[tuple(map(number.field, SAME))].append(number)
        pairs[name] = [numbers for numbers in settings.values() if len(numbers) == 2]
    return pairs


def known_of_laboratories() -> str:
    """Return one sentence on the differences of settings that were trained or printed twice."""

    def of(name: str) -> tuple[int, float, float, float]:
        gaps = [abs(one.points - two.points) for one, two in repeated_settings()[name]]
        root_mean_square = np.sqrt(np.mean(np.square(gaps)))
        return len(gaps), min(gaps), max(gaps), float(root_mean_square)

    count, least, most, rms = of("two_papers")
    again, _, furthest, printed = of("one_paper")
    return (
        f"Known of laboratories: {count} settings that two papers trained lie {least:.1f} to "
        f"{most:.1f} points apart, recipes included (root mean square {rms:.1f}, so at most "
        f"{rms / np.sqrt(2):.1f} a laboratory); {again} that one paper printed twice lie at most "
        f"{furthest:.2f} apart (root mean square {printed:.2f})."
    )
