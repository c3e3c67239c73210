"""Tables: functions of a study's results, one file for each kind.

A table is registered with ``@TABLES.register("name", display="Title")`` on a function
``build(inputs: Inputs) -> Table``. It raises NothingToShow with a reason when there is nothing to
print. This folder holds nothing else.
"""

from benchmark.core.registry import Registry

TABLES = Registry("table", "benchmark.report.tables", {"of_trials": False})
