"""Statistics of a study, computed from its long table alone; no torch here."""

from benchmark.stats.analysis import analyse, write_stats
from benchmark.stats.runs import load_runs

__all__ = ["analyse", "load_runs", "write_stats"]
