"""All checks on one implementation, one after the other."""

from collections.abc import Iterator

from benchmark.losses.conformance.checks import (
    check_agreement,
    check_execution,
    check_invariances,
    check_unusual,
)
from benchmark.losses.conformance.findings import Finding
from benchmark.losses.conformance.processes import check_processes
from benchmark.losses.conformance.subject import Subject


def all_findings(subject: Subject, processes: bool) -> Iterator[Finding]:
    """Yield what each check finds; without ``processes`` none are started."""
    for check in (check_agreement, check_invariances, check_unusual, check_execution):
        yield from check(subject)
    if processes:
        yield check_processes(subject)
