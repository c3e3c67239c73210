"""The helper of a live mirror, as a program that looks at its run often."""

from __future__ import annotations

import sys

from benchmark.runs.tracking import mirror_process

if __name__ == "__main__":
    mirror_process.POLL_SECONDS = 0.2
    sys.exit(mirror_process.main())
