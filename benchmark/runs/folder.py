"""The folder of all runs while a workflow writes to it: is it still the one that was there?"""

import contextlib
import os
import sys
from pathlib import Path

from benchmark.core.errors import RunError
from benchmark.core.records import LOG


class RunsFolder:
    """``<results>/runs``, held by an open handle from ``watch`` on.

    A path says little: on an unmounted disk it leads to the mount point, and Snakemake makes the
    folders of its next job anew. The handle stays that of the folder which was there, whose number
    nobody gets meanwhile.
    """

    def __init__(self, results: str | Path) -> None:
        self.path = Path(results).absolute() / "runs"
        self._handle: int | None = None

    def watch(self) -> None:
        """Make the folder if needed and hold it; the first job says where it cannot be written."""
        with contextlib.suppress(OSError):
            self.path.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)

    def is_gone(self) -> bool:
        """Say whether the folder that is watched is no longer at its path."""
        if self._handle is None:
            return False
        try:
            return not os.path.samestat(os.fstat(self._handle), os.stat(self.path))
        except OSError:  # nothing there, or a file system that has let go of the handle
            return True

    def require(self) -> None:
        """Raise RunError when the folder is gone: a run would be made in a wrong place."""
        if self.is_gone():
            raise RunError(
                f"{self.path} is gone: deleted, moved or unmounted while the workflow ran. Nothing "
                "is made in its place, neither runs nor tables nor a report. Put it back and start "
                "the same command again: runs finished in it are kept. Without it the same command "
                "begins anew"
            )

    def say_if_gone(self) -> None:
        """Print the error of ``require`` when a workflow ends; remove what was made meanwhile."""
        try:
            self.require()
        except RunError as error:
            self.remove_empty()
            print(f"error: {error}", file=sys.stderr)

    def remove_empty(self) -> None:
        """Remove the empty folders and logs that jobs left at the path of a folder that is gone."""
        if not self.is_gone():
            return
        for name, _, files in os.walk(self.path, topdown=False):
            folder = Path(name)
            with contextlib.suppress(OSError):  # not empty, or not ours: somebody else's
                # Snakemake makes the log of a failed job
                if LOG in files and not (folder / LOG).stat().st_size:
                    (folder / LOG).unlink()
                folder.rmdir()
