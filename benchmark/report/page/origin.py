"""Provenance for the page: code, packages, hardware and data, with mixed versions in plain sight."""

from __future__ import annotations

from typing import Any

from benchmark.report.tables.inputs import Inputs
from benchmark.report.tables.numbers import count, duration
from benchmark.report.tables.select import run_states

LISTED = 40  # entries of one list that a page shows


def origin(inputs: Inputs) -> list[tuple[str, str]]:
    """Returns (term, value) pairs from the provenance file, or from the long table where there is none.

    Entries that this page does not know by name are printed as they are.
    """
    rest = dict(inputs.provenance)
    for shown_elsewhere in ("study", "runs", "errors", "warnings"):
        rest.pop(shown_elsewhere, None)
    found = []
    for column, key, term in (
        ("code_version", "code_versions", "Code version"),
        ("platform", "platforms", "Platform"),
    ):
        versions = rest.pop(key, None) or _from_runs(inputs, column)
        if versions:
            found.append((term, _shares(versions)))
    if inputs.study.digest:
        found.append(("Study file", f"{inputs.study.name}, digest {inputs.study.digest}"))
    for machine in rest.pop("hardware", None) or []:
        found.append(("Hardware", _machine(machine)))
    found.extend(_weights(rest.pop("weights", None) or []))
    packages = rest.pop("packages", None) or {}
    if packages:
        found.append(
            (
                "Packages",
                ", ".join(f"{name} {_versions(found)}" for name, found in sorted(packages.items())),
            )
        )
    for label, data in (rest.pop("datasets", None) or {}).items():
        found.append((f"Data: {label}", _data(data)))
    if rest.get("total_seconds"):
        found.append(("Computing time, all runs", duration(rest.pop("total_seconds"))))
    found.extend(_flat(rest))
    return found


def _from_runs(inputs: Inputs, column: str) -> dict[str, int]:
    finished = run_states(inputs.runs)
    counts = (
        finished.loc[finished["status"] == "ok", column].astype(str).value_counts().sort_index()
    )
    return {name or "not recorded": int(number) for name, number in counts.items()}


def _shares(versions: dict[str, int]) -> str:
    parts = [f"{name} ({count(number, 'run')})" for name, number in sorted(versions.items())]
    return "; ".join(
        [*parts, "mixed: compare numbers across them with care"] if len(parts) > 1 else parts
    )


def _versions(found: Any) -> str:
    if not isinstance(found, dict):
        return str(found)
    return (
        next(iter(found))
        if len(found) == 1
        else " / ".join(f"{v} ({count(n, 'run')})" for v, n in found.items())
    )


def _machine(machine: Any) -> str:
    if not isinstance(machine, dict):
        return _text(machine)
    facts = [str(machine.get("cpu") or "processor not recorded")]
    if machine.get("cores"):
        facts.append(
            f"{machine.get('usable_cores') or machine['cores']} of {count(machine['cores'], 'core')} used"
        )
    if machine.get("instructions"):
        facts.append(f"{machine['instructions']} instructions")
    if machine.get("memory_gb"):
        facts.append(f"{machine['memory_gb']} GB of memory")
    gpus = machine.get("gpus") or []
    facts.append(f"GPU: {_text(gpus)}" if gpus else "no GPU")
    if machine.get("runs"):
        facts.append(count(machine["runs"], "run"))
    return ", ".join(facts)


def _weights(entries: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Returns one line per architecture and source of its weights: the first weights (those of a seed are the same for
    all losses), and which settings make networks of which size."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in entries:
        if "backbone" in entry:
            groups.setdefault((str(entry["backbone"]), str(entry.get("weights"))), []).append(entry)
    found = []
    for (backbone, source), part in groups.items():
        digests: dict[str, int] = {}
        sizes: dict[Any, tuple[set[str], int]] = {}
        for entry in part:
            runs, digest, size = (
                entry.get("runs", 0),
                str(entry.get("initial_digest")),
                entry.get("parameters"),
            )
            digests[digest] = digests.get(digest, 0) + runs
            settings, number = sizes.get(size, (set(), 0))
            sizes[size] = (settings | set(entry.get("settings", ())), number + runs)
        first = ", ".join(f"{digest} ({count(runs, 'run')})" for digest, runs in digests.items())
        of_size = [
            f"{size} parameters{' in ' if names else ''}{', '.join(sorted(names))} ({count(runs, 'run')})"
            for size, (names, runs) in sizes.items()
        ]
        value = f"{source}; first weights of the backbone by digest: {first}; networks of {'; '.join(of_size)}"
        found.append((f"Weights: {backbone}", value))
    return found


def _data(data: Any) -> str:
    prints = data.get("fingerprints") or data.get("fingerprint") or "not recorded"
    parts = [f"fingerprint {_shares(prints) if isinstance(prints, dict) else prints}"]
    for split, number in (data.get("counts") or {}).items():
        if isinstance(number, dict):
            parts.append(
                f"{split}: " + ", ".join(f"{value} {key}" for key, value in number.items())
            )
        else:
            parts.append(f"{split.replace('_', ' ')} {number}")
    return "; ".join(parts)


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Returns nested data as lines: a mapping of plain values is one line, deeper levels get their path."""
    if isinstance(value, dict):
        if value and all(_plain(item) for item in value.values()) and name:
            return [
                (
                    _term(name),
                    ", ".join(f"{key} {_text(item)}" for key, item in list(value.items())[:LISTED]),
                )
            ]
        return [
            line
            for key, item in value.items()
            for line in _flat(item, f"{name} · {key}" if name else str(key))
        ]
    if isinstance(value, list) and value and not all(_plain(item) for item in value):
        numbered = [(f"{name} {index}", item) for index, item in enumerate(value[:LISTED], start=1)]
        return [line for key, item in numbered for line in _flat(item, key)]
    return [] if value in (None, "", [], {}) else [(_term(name), _text(value))]


def _plain(value: Any) -> bool:
    return not isinstance(value, dict | list) or (
        isinstance(value, list) and not any(map(_nested, value))
    )


def _nested(value: Any) -> bool:
    return isinstance(value, dict | list)


def _text(value: Any) -> str:
    if isinstance(value, list):
        more = f" and {len(value) - LISTED} more" if len(value) > LISTED else ""
        return ", ".join(map(_text, value[:LISTED])) + more if value else "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "none" if value is None else str(value)


def _term(name: str) -> str:
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]
