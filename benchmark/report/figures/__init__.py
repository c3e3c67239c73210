"""Figures: one file each, a function of the long table, the statistics and the study.

A figure is registered with ``@FIGURES.register("name", display="Title")`` on a function
``build(runs, stats, study) -> Drawing``. It raises NothingToShow with a reason when there is nothing to draw.
matplotlib is imported when a figure is drawn, not when its name is asked for.
"""

from __future__ import annotations

from benchmark.core.registry import Registry

FIGURES = Registry("figure", "benchmark.report.figures")
