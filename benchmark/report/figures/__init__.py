"""Figures: functions of a study's results, registered with ``@FIGURES.register("name", ...)``.

Each is a function of ``StudyResults`` that returns a ``Drawing``, or raises NothingToShow with a
reason.
matplotlib is imported when a figure is drawn, not when its name is asked for.
"""

from benchmark.core.registry import Registry

FIGURES = Registry("figure", "benchmark.report.figures", {"of_trials": False})
