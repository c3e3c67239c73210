"""Tables: one file each, a function of the long table, the statistics and the study.

A table is registered with ``@TABLES.register("name", display="Title")`` on a function
``build(runs, stats, study) -> Table``. It raises NothingToShow with a reason when there is nothing to print.
"""

from __future__ import annotations

from benchmark.core.registry import Registry

TABLES = Registry("table", "benchmark.report.tables")
