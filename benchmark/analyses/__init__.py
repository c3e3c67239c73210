"""Analyses behind the losses: one file each, a function of a context that gives a figure, a table and claims.

An analysis is registered with ``@ANALYSES.register("name", display="Title", places=("Smooth-AP Fig. 4",))`` on a
function ``build(context) -> Analysis``. Analyses may train what they look at and may import torch, inside ``build``:
asking for names and titles imports neither torch nor matplotlib. Those with ``trains=False`` take seconds and are part
of every study of the papers' numbers. Nothing else in the package may import this one;
the report reads the files that ``benchmark.analyses.write`` leaves.
"""

from __future__ import annotations

from benchmark.core.registry import Registry

ANALYSES = Registry("analysis", "benchmark.analyses")
