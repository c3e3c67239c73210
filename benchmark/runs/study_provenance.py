"""Where the numbers of a study come from, summed over its runs, and what about that deserves a warning."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from benchmark.runs.status import RunState
from benchmark.study.grid import Run


class Summary:
    """Counts, run by run, of code versions, platforms, packages, hardware and dataset fingerprints."""

    def __init__(self, study: str):
        self.study = study
        self.code_versions: Counter[str] = Counter()
        self.platforms: Counter[str] = Counter()
        self.hardware: Counter[str] = Counter()
        self.weights: dict[str, Counter[str]] = defaultdict(Counter)  # settings of the runs
        self.packages: dict[str, Counter[str]] = defaultdict(Counter)
        self.fingerprints: dict[str, Counter[str]] = defaultdict(Counter)
        self.streams: dict[tuple, Counter[str]] = defaultdict(Counter)
        self.starts: dict[tuple, Counter[str]] = defaultdict(Counter)
        self.moved: list[str] = []
        self.updated: list[str] = []
        self.counts: dict[str, Any] = {}
        self.seconds = 0.0

    def add(self, run: Run, state: RunState) -> None:
        """Adds one run; runs without numbers of the present specification add nothing."""
        if state.status not in ("ok", "diverged"):
            return
        self.code_versions[str(state.result.get("code_version"))] += 1
        dataset = state.result.get("dataset", {})
        label = run.spec.run_id.split("/", 1)[0]
        self.fingerprints[label][str(dataset.get("fingerprint"))] += 1
        self.counts.setdefault(label, dataset.get("counts", {}))
        pair = (label, run.spec.setting, run.spec.batch_size, run.spec.seed)
        stream = state.result.get("batch_stream")
        if stream:  # a diverged run may have seen fewer batches than the others
            self.streams[*pair, stream.get("batches")][str(stream.get("sha256"))] += 1
        source = state.provenance
        if source:
            self.platforms[str(source.get("platform"))] += 1
            self.hardware[json.dumps(_hardware(source), sort_keys=True)] += 1
            self.weights[json.dumps(source.get("weights"), sort_keys=True)][run.spec.setting] += 1
            weights = source.get("weights") or {}
            if (
                "initial_digest" in weights
            ):  # settings are labels: networks of several kinds are not compared
                kind = tuple(weights.get(name) for name in ("backbone", "weights", "parameters"))
                self.starts[*pair, kind][str(weights["initial_digest"])] += 1
            self.seconds += source.get("timing", {}).get("total_seconds") or 0.0
            if len(source.get("machines", ())) > 1:
                self.moved.append(run.spec.run_id)
            if len(source.get("package_digests", ())) > 1:
                self.updated.append(run.spec.run_id)
            for name, version in source.get("packages", {}).items():
                self.packages[name][str(version)] += 1

    def record(self, statuses: dict[str, int]) -> dict[str, Any]:
        """Returns the content of ``results/<study>/provenance.json``."""
        return {
            "study": self.study,
            "runs": statuses,
            "code_versions": dict(self.code_versions),
            "platforms": dict(self.platforms),
            "packages": {name: dict(versions) for name, versions in self.packages.items()},
            "hardware": [
                {**_mapping(text), "runs": count} for text, count in self.hardware.most_common()
            ],
            "weights": [
                {**_mapping(text), "settings": sorted(settings), "runs": settings.total()}
                for text, settings in sorted(
                    self.weights.items(), key=lambda item: -item[1].total()
                )
            ],
            "datasets": {
                label: {"fingerprints": dict(found), "counts": self.counts[label]}
                for label, found in self.fingerprints.items()
            },
            "total_seconds": round(self.seconds, 1),
            "errors": self.errors(),
            "warnings": self.warnings(),
        }

    def errors(self) -> list[str]:
        """Returns what makes numbers incomparable: one dataset with two contents."""
        return [
            f"dataset '{label}' had different contents in different runs: {_shares(found)}; "
            "their numbers cannot be compared: settle on one and run the others again"
            for label, found in self.fingerprints.items()
            if len(found) > 1
        ]

    def warnings(self) -> list[str]:
        """Returns what a reader should know before comparing runs: pairs that do not match, mixed code, platforms or
        packages, and runs that changed the machine or packages on their way."""
        mixed = [
            f"runs of different {what}: {_shares(found)}"
            for what, found in (
                ("code versions", self.code_versions),
                ("platforms", self.platforms),
            )
            if len(found) > 1
        ]
        mixed += [
            f"runs with different versions of {name}: {_shares(found)}"
            for name, found in sorted(self.packages.items())
            if len(found) > 1
        ]
        return self._unmatched() + mixed + self._moved()

    def _unmatched(self) -> list[str]:
        """Returns warnings when losses that are compared seed by seed did not see the same batches, or did not start
        from the same weights of the backbone."""
        warnings = []
        for what, groups in (
            ("saw different batches or augmentations", self.streams),
            ("started from different weights", self.starts),
        ):
            apart = [pair for pair, found in groups.items() if len(found) > 1]
            if apart:
                label, setting, batch_size, seed, _ = apart[0]
                warnings.append(
                    f"in {len(apart)} of {len(groups)} groups of runs with one seed the losses {what} (first: "
                    f"{label}/{setting}, batch size {batch_size}, seed {seed}), so that their differences are not "
                    "paired: train them with one version of the code on one kind of machine"
                )
        return warnings

    def _moved(self) -> list[str]:
        """Returns warnings about runs that were continued on another model of processor or GPU, or with packages of
        other versions."""
        return [
            f"runs that were continued {how}: {len(names)} (first: {names[0]}); they may differ in their last digits "
            "from runs on either"
            for how, names in (
                ("on another kind of machine", self.moved),
                ("with other versions of packages", self.updated),
            )
            if names
        ]


def _hardware(source: dict[str, Any]) -> Any:
    """Returns the hardware of a run and, where they were recorded, the vector instructions it computed with."""
    hardware, used = source.get("hardware"), (source.get("numerics") or {}).get("instructions")
    return {**hardware, "instructions": used} if used and isinstance(hardware, dict) else hardware


def _shares(found: Counter[str]) -> str:
    return ", ".join(
        f"{name} ({count} run{'s' if count != 1 else ''})" for name, count in found.most_common()
    )


def _mapping(text: str) -> dict[str, Any]:
    value = json.loads(text)
    return value if isinstance(value, dict) else {"name": value}
