"""Tables: functions of a study's results, registered with ``@TABLES.register("name", ...)``.

Each is a function of ``StudyResults`` that returns a ``Table``, or raises NothingToShow with a
reason.
"""

from benchmark.core.registry import Registry

TABLES = Registry("table", "benchmark.report.tables", {"of_trials": False})
