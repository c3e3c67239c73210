"""The records of one run, read as its own: those of another specification or run are refused."""

from pathlib import Path

from benchmark.core.errors import RunError
from benchmark.core.record_files import unreadable
from benchmark.core.records import RunSpec
from benchmark.core.results import Provenance, Result


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
    _check_owner(result, path, spec)
    if (name := result.dataset.name) != spec.dataset.name:
        raise unreadable(path, f"the result of '{spec.run_id}'", f"it is of dataset '{name}'")
    return result


def read_own_provenance(path: Path, spec: RunSpec) -> Provenance:
    """Return the provenance at ``path`` of the run with this specification; raise RunError."""
    provenance = Provenance.read(path)
    _check_owner(provenance, path, spec)
    return provenance


def _check_owner(record: Result | Provenance, path: Path, spec: RunSpec) -> None:
    """Raise RunError for a record of another run."""
    reason = ""
    if record.run_id != spec.run_id:
        reason = f"it is of run '{record.run_id}'"
    elif record.spec_digest != spec.digest:
        reason = f"it is of specification {record.spec_digest}, not {spec.digest}"
    if reason:
        raise unreadable(path, f"a record of '{spec.run_id}'", reason)
