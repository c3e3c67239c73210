"""The records of one run, read as its own: those of another specification or run are refused."""

from pathlib import Path

from benchmark.core.errors import RunError
from benchmark.core.record_files import unreadable
from benchmark.core.records import RunSpec
from benchmark.core.results import Result


class StaleError(RunError):
    """``result`` is of another specification than its run has now."""

    def __init__(self, path: Path, result: Result, spec: RunSpec):
        self.result = result
        super().__init__(
            f"{path} was made from another specification (digest {result.spec_digest}, now "
            f"{spec.digest})"
        )


def read_own_result(path: Path, spec: RunSpec) -> Result:
    """Return the result at ``path`` of the run with this specification.

    Raise StaleError for one of another specification, and RunError for a damaged one and for one
    that contradicts the specification that it names.
    """
    result = Result.read(path)
    if result.spec_digest != spec.digest:
        raise StaleError(path, result, spec)
    if result.run_id != spec.run_id:
        raise unreadable(path, f"the result of '{spec.run_id}'", f"it is of run '{result.run_id}'")
    return result
