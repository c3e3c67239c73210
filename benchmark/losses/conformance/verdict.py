"""All checks on one implementation, as text and as data."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmark.losses.conformance.candidate import load
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.checks import (
    check_agreement,
    check_execution,
    check_invariances,
    check_unusual,
)
from benchmark.losses.conformance.findings import Finding
from benchmark.losses.conformance.processes import check_processes
from benchmark.losses.conformance.reference import reference
from benchmark.losses.conformance.subject import Subject

Say = Callable[[str], None]
WIDTH = 24


@dataclass(frozen=True)
class Verdict:
    """What was held against which loss, and what every check found."""

    source: str
    loss: str
    options: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(finding.result != "failed" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        return {
            "candidate": self.source,
            "reference": self.loss,
            "options": self.options,
            "passed": self.passed,
            "checks": [finding.as_json() for finding in self.findings],
        }


def conform(
    source: str,
    loss: str,
    options: Mapping[str, Any],
    *,
    processes: bool = True,
    say: Say = lambda text: None,
) -> Verdict:
    """Return the verdict on the implementation ``source`` as the loss of that name.

    ``say`` gets a line for each check as soon as it is done, then what failed in detail. Without
    ``processes`` nothing is started in processes of their own. Raises ConfigError for an
    implementation, a loss or options that do not exist.
    """
    formula = reference(loss, options)
    subject = Subject(load(source, loss, options), formula)
    findings = []
    say(f"{source} as {loss} ({_listed(vars(formula.config))})")
    for finding in all_findings(subject, processes):
        findings.append(finding)
        brief = "" if finding.result == "failed" else finding.note
        say(f"  {finding.check:{WIDTH}} {finding.result:15} {brief}".rstrip())
    verdict = Verdict(source, loss, dict(options), tuple(findings))
    printed: set[str] = set()
    for finding in verdict.findings:
        if finding.result == "failed":
            say(f"\n{finding.check}: {finding.note}")
            text = "" if finding.case is None else shown(finding.case)
            say("  (a batch shown above)" if text in printed else text)
            printed.add(text)
    failed = sum(finding.result == "failed" for finding in findings)
    say(f"\n{'passed' if verdict.passed else f'failed: {failed} of {len(findings)} checks'}")
    return verdict


def all_findings(subject: Subject, processes: bool) -> Iterator[Finding]:
    """Yield what each check finds, one after the other."""
    for check in (check_agreement, check_invariances, check_unusual, check_execution):
        yield from check(subject)
    if processes:
        yield check_processes(subject)


def shown(case: Case, most: int = 12) -> str:
    """Return a batch as Python reads it, its first rows when it is large."""
    lines = []
    for name in ("embeddings", "labels", "references", "reference_labels"):
        values = getattr(case, name)
        if values is None:
            continue
        if values.ndim == 1:
            lines.append(f"  {name} = {values.tolist()}")
            continue
        lines.append(f"  {name} = [  # {len(values)} rows, {values.shape[1]} dimensions")
        for row in values[:most].tolist():
            lines.append(f"    [{', '.join(f'{value:.5g}' for value in row)}],")
        lines.append("  ]" if len(values) <= most else "    ...  # all rows are in the JSON\n  ]")
    return "\n".join(lines)


def _listed(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())
