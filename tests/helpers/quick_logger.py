"""The process that logs a run to a tracking server, as a program that looks at its run often."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmark.runs import tracking

if __name__ == "__main__":
    tracking.POLL = 0.2
    tracking.follow(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
