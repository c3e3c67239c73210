"""References that results are judged against: published numbers and frozen runs of our own; no torch here."""

from benchmark.papers.references.frozen import freeze, load_frozen
from benchmark.papers.references.margins import load_margins
from benchmark.papers.references.published import (
    asked_results,
    countable_results,
    load_published_table,
    published_names,
    published_results,
)

__all__ = [
    "asked_results",
    "countable_results",
    "freeze",
    "load_frozen",
    "load_margins",
    "load_published_table",
    "published_names",
    "published_results",
]
