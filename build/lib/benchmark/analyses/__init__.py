"""Analyses behind the losses, each from a context to a figure, a table and findings.

An analysis is registered with ``@ANALYSES.register("name", display="Title", places=(...))`` on a
function ``build(context) -> Analysis``, which may train and import torch: asking for names and
titles imports neither torch nor matplotlib. Those with ``trains=False`` take seconds and are part
of every study of the papers' numbers; ``papers=(...)`` names the papers whose printed numbers it is
compared with. Only ``cli`` imports this package; the report reads the files that ``make`` leaves.
"""

from benchmark.core.registry import Registry

FACTS = {"places": (), "papers": (), "trains": True}
ANALYSES = Registry("analysis", "benchmark.analyses", FACTS)
