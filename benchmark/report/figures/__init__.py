"""Figures: functions of a study's results, one file for each kind.

A figure is registered with ``@FIGURES.register("name", display="Title")`` on a function
``build(inputs: Inputs) -> Drawing``. It raises NothingToShow with a reason when there is nothing to
draw. This folder holds nothing else. matplotlib is imported when a figure is drawn, not when its
name is asked for.
"""

from benchmark.core.registry import Registry

FIGURES = Registry("figure", "benchmark.report.figures", {"of_trials": False})
