"""References that results are judged against: published numbers and frozen runs of our own; no torch here."""

from benchmark.references.frozen import freeze, load_frozen
from benchmark.references.published import load_published_table, published_results

__all__ = ["freeze", "load_frozen", "load_published_table", "published_results"]
