"""Tables: one file each, a function of a study's results.

A table is registered with ``@TABLES.register("name", display="Title")`` on a function
``build(inputs: Inputs) -> Table``. It raises NothingToShow with a reason when there is nothing to
print. The file has the name of the table; this folder holds nothing else.
"""

from __future__ import annotations

from benchmark.core.registry import Registry

TABLES = Registry("table", "benchmark.report.tables")
