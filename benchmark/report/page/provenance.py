"""Provenance for the page: code, packages, hardware and data; mixed versions are named."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.report.inputs import Inputs
from benchmark.report.numbers import count, duration

Facts = list[tuple[str, str]]


def provenance_facts(inputs: Inputs) -> Facts:
    """Return (term, value) pairs of the study's ``provenance.json``.

    Without it, code versions and platforms come from the table of runs.
    """
    record = inputs.provenance
    finished = inputs.runs[inputs.runs["status"] == "ok"]
    facts: Facts = []
    for column, key, term in (
        ("code_version", "code_versions", "Code version"),
        ("platform", "platforms", "Platform"),
    ):
        versions = record.get(key) or Counter(finished[column].replace("", "not recorded"))
        if versions:
            facts.append((term, _shares(versions)))
    if inputs.study.digest:
        facts.append(("Study file", f"{inputs.study.name}, digest {inputs.study.digest}"))
    facts += [("Hardware", _machine(machine)) for machine in record.get("hardware", ())]
    facts += _weights(record.get("weights", ()))
    if packages := record.get("packages"):
        told = [f"{name} {_versions(found)}" for name, found in sorted(packages.items())]
        facts.append(("Packages", ", ".join(told)))
    facts += [(f"Data: {label}", _data(data)) for label, data in record.get("datasets", {}).items()]
    if seconds := record.get("total_seconds"):
        facts.append(("Computing time, all runs", duration(seconds)))
    return facts


def _shares(versions: Mapping[str, int]) -> str:
    parts = [f"{name} ({count(number, 'run')})" for name, number in sorted(versions.items())]
    parts += ["mixed: compare numbers across them with care"] * (len(parts) > 1)
    return "; ".join(parts)


def _versions(versions: Mapping[str, int]) -> str:
    """Return "2.13.0", or "2.4.6 (70 runs) / 2.3.0 (7 runs)" for several."""
    if len(versions) == 1:
        return next(iter(versions))
    return " / ".join(f"{name} ({count(number, 'run')})" for name, number in versions.items())


def _machine(machine: Mapping[str, Any]) -> str:
    facts = [str(machine.get("cpu") or "processor not recorded")]
    if cores := machine.get("cores"):
        facts.append(f"{machine.get('usable_cores') or cores} of {count(cores, 'core')} used")
    if instructions := machine.get("instructions"):
        facts.append(f"{instructions} instructions")
    if memory := machine.get("memory_gb"):
        facts.append(f"{memory} GB of memory")
    gpus = machine.get("gpus")
    facts.append(f"GPU: {', '.join(gpus)}" if gpus else "no GPU")
    if runs := machine.get("runs"):
        facts.append(count(runs, "run"))
    return ", ".join(facts)


def _weights(entries: Sequence[Mapping[str, Any]]) -> Facts:
    """Return one fact per architecture and source of its weights.

    It names the first weights (those of a seed are the same for all losses), and which settings
    make networks of which size.
    """
    digests: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    sizes: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    settings: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for entry in entries:
        kind, size = (entry["backbone"], entry["weights"]), entry["parameters"]
        digests[kind][entry["initial_digest"]] += entry["runs"]
        sizes[kind][size] += entry["runs"]
        settings[*kind, size].update(entry["settings"])
    facts = []
    for kind, found in digests.items():
        first = ", ".join(f"{digest} ({count(runs, 'run')})" for digest, runs in found.items())
        networks = [
            f"{size} parameters in {', '.join(sorted(settings[*kind, size]))} "
            f"({count(runs, 'run')})"
            for size, runs in sizes[kind].items()
        ]
        backbone, source = kind
        value = (
            f"{source}; first weights of the backbone by digest: {first}; "
            f"networks of {'; '.join(networks)}"
        )
        facts.append((f"Weights: {backbone}", value))
    return facts


def _data(data: Mapping[str, Any]) -> str:
    parts = [f"fingerprint {_shares(data['fingerprints'])}"]
    for split, counts in data["counts"].items():
        told = ", ".join(f"{number} {what}" for what, number in counts.items())
        parts.append(f"{split}: {told}")
    return "; ".join(parts)
