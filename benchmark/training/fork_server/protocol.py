"""What client and server of warm starts say to each other: one JSON line each way, then the exit status."""

from __future__ import annotations

import os
from collections.abc import Mapping

from benchmark.core.environment import WARM

VARIABLE = WARM.name
OFF = "off"
# Variables that a shell and Snakemake set anew for every command and that no import of ours reads; all others
# must be equal on both sides, because libraries read some of them when they are imported.
TEMPORARY = {"TMPDIR", "TEMPDIR", "TEMP", "TMP"}
THREADS = {"GOTO_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"}
OWN = {"_", "SHLVL", "PWD", "OLDPWD", VARIABLE, *TEMPORARY, *THREADS}


def environment(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variables that decide whether a warm process may stand in for a new one."""
    return {name: value for name, value in variables.items() if name not in OWN}
