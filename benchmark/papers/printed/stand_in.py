"""Which runs on a stand-in dataset fill the cell of a published number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from benchmark.papers.candidates import Candidate
from benchmark.papers.library import vocabulary_of
from benchmark.papers.matching import match, stated_by
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.vocabulary import EMBEDDING_DIM, load_vocabulary
from benchmark.study.stand_in import LARGEST_BATCH


def stand_in_candidate(
    number: PublishedNumber, dataset: str, candidates: Iterable[Candidate]
) -> Candidate | None:
    """Return the candidate on ``dataset`` that comes closest to a published number, or None.

    The number's dataset, backbone and training set are given up, and batch sizes are cut to the
    stand-in's largest. Its width is given up where the stand-in does not have it, and its stated
    conditions where no option of the stand-in changes their settings.
    """
    if not number.stand_in:
        return None
    everything = list(candidates)
    alike = [each for each in everything if same_kind(number.backbone, each)] or everything
    words = vocabulary_of(number.source)
    asked = stated_by(number, words).without("training")
    size = None if asked.batch_size is None else min(asked.batch_size, LARGEST_BATCH)
    asked = replace(asked, dataset=dataset, backbone="", batch_size=size)
    attempts = [asked, asked.without(EMBEDDING_DIM)]
    own = [each.condition for each in asked.requirements if each.key in number.conditions]
    changed = {column for each in alike for column in each.changed}
    if not any(condition.covers(column) for condition in own for column in changed):
        attempts.append(asked.without(EMBEDDING_DIM, *number.conditions))
    found = (match(attempt, alike).candidate for attempt in attempts)
    return next((candidate for candidate in found if candidate is not None), None)


def same_kind(backbone: str, candidate: Candidate) -> bool:
    """Return whether both backbones are transformers, or neither is."""
    transformers = load_vocabulary().transformers
    return (backbone in transformers) == (candidate.backbone in transformers)
