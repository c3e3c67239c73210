"""Analyses behind the losses, each from a context to a figure, a table and findings.

docs/analyses.md says how one is registered; ``papers=(...)`` names the papers whose printed numbers
it is compared with. Asking for names and titles imports neither torch nor matplotlib. Only ``cli``
imports this package; the report reads the files that ``make`` leaves.
"""

from benchmark.core.registry import Registry

FACTS = {"places": (), "papers": (), "trains": True}
ANALYSES = Registry("analysis", "benchmark.analyses", FACTS)
