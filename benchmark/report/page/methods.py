"""How every number was made, and with what: the study, its recipes, code, hardware and data."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.metrics.names import metric_of
from benchmark.papers.fidelity import study_ledger
from benchmark.papers.verdicts.vocabulary import VERDICTS
from benchmark.papers.verdicts.words import rule
from benchmark.report.inputs import Inputs
from benchmark.report.labels import confidence, loss_label, metric_label
from benchmark.report.numbers import count, duration, words_of
from benchmark.report.table import Section, Table, TableCell, text_column
from benchmark.study import Study


def methods(inputs: Inputs) -> list[tuple[str, str]]:
    """Return (term, explanation) pairs for the last section of the page."""
    study = inputs.study
    return [
        *((metric_label(name), _metric(name)) for name in study.metrics),
        (
            "Selection rule",
            "The headline number of a run is its test score after the last epoch. The best test "
            "epoch is stored beside it and appears only where it is named.",
        ),
        (
            "Seeds and pairs",
            "Runs with the same seed share data split, initial weights, order of batches and "
            "augmentation, whatever the loss, so losses are compared seed by seed with a two-sided "
            "paired t-test. All pairs of losses of a dataset and setting lend each other their "
            "spread; the test with a pair's own spread alone is p_plain in paired.csv.",
        ),
        (
            "Correction",
            f"p values are corrected by Holm's method at level {study.comparison.alpha:g}; a "
            "family is all tests of one kind on one dataset, split and metric, over settings and "
            "batch sizes. Families and sizes stand under each table.",
        ),
        (
            "Intervals",
            f"{confidence(study)} Student-t intervals over seeds. Standard deviations divide by "
            "n − 1.",
        ),
        (
            "Effect size and detectable difference",
            "d_z is the mean difference over the standard deviation of the differences, with "
            "Hedges' correction. The detectable difference is the smallest true one that the test "
            "finds with probability 0.8 at the strictest level of Holm in its family.",
        ),
        *([("Equal budgets and their limits", _BUDGETS)] if inputs.budgets else []),
        ("Verdicts", _verdicts(inputs)),
        *([("Registered analysis", inputs.registered.words)] if inputs.registered else []),
        *([("Looks", _looks(study))] if study.looks else []),
        ("Baseline and ablation", _comparison(study)),
    ]


_BUDGETS = (
    "Two rule sets: “authors” is the setting as published, “k trials” the best of the first k "
    "trials. Trials are Sobol points in ranges that stand beside the options and were fixed before "
    "any run; the mean over folds of held-out training classes decides, never a test image; final "
    "runs have fresh seeds. Limits: ranges decide what can be found, and more options of its own "
    "spread a loss's trials thinner; equal trials are not equal time; rank intervals draw trials "
    "and seeds again with replacement, as if Sobol points were independent, and move test scores "
    "by what changes on the held-out classes; importance looks at one option at a time."
)


def _metric(name: str) -> str:
    metric = metric_of(name)
    if metric is None:
        return f"{name}, as the evaluation returned it."
    return (
        f"{metric.description[0].upper()}{metric.description[1:]}; mean over queries, in percent. "
        "The query itself is taken out of the ranking by its index; equal scores are ranked by "
        "index."
    )


def _verdicts(inputs: Inputs) -> str:
    words = "; ".join(f"{words_of(name)}: {meaning}" for name, meaning in VERDICTS.items())
    text = (
        "The difference is ours minus the reference, and its standard error counts both sides. "
        f"{words[0].upper()}{words[1:]}. A reference that states no number of runs counts as one "
        "draw with our own spread. Our spread is shared with the other losses and batch sizes of "
        "the dataset and setting. Each verdict is judged again under four other assumptions and "
        "marked where it would change."
    )
    if not inputs.verdicts.empty:
        text += f" The rule is {rule(inputs.verdicts['level'].min())}."
    if inputs.verdicts.empty or not (used := sorted(inputs.verdicts["margin"].dropna().unique())):
        return text
    margins = ", ".join(f"{value:g}" for value in used)
    return f"{text} Margins in use: {margins} percentage points."


def _looks(study: Study) -> str:
    looks = ", ".join(map(str, study.looks))
    return (
        f"Looks are planned after {looks} seeds; this is look {study.look} of {len(study.looks)}. "
        "Each tests at a level that pays for the others, so that a wrong verdict at any of them "
        "is no more likely than one at a single look."
    )


def _comparison(study: Study) -> str:
    baseline = study.comparison.baseline
    names = [loss_label(label, study) for label in study.comparison.ablation]
    parts = [f"The baseline is {loss_label(baseline, study)}."] * bool(baseline)
    parts += [f"The ablation goes {' → '.join(names)}."] * (len(names) > 1)
    return " ".join(parts) or "None is set."


def recipe_sources(study: Study) -> Table | None:
    """Return one section per recipe with the source of each of its parts; None without any."""
    recipes = {block.recipe_name: block.sources for block in study.blocks if block.recipe_name}
    sections = [
        Section(name, [[TableCell(part), TableCell(source)] for part, source in sources.items()])
        for name, sources in sorted(recipes.items())
        if sources
    ]
    if not sections:
        return None
    silent = ", ".join(sorted(name for name, sources in recipes.items() if not sources))
    return Table(
        "Sources of the recipes",
        "What each part of a recipe follows, as its file says. The values themselves stand in the "
        "specification of every run.",
        [text_column("Part of the recipe"), text_column("Where its values come from")],
        sections,
        [f"No sources are given in: {silent}."] * bool(silent),
    )


def recipe_deviations(study: Study) -> Table | None:
    """Return one section per recipe with its values that may move a score; None without a paper."""
    rows = study_ledger(study)
    if not rows:
        return None
    moving = [row for row in rows if row.deviates]
    sections = [
        Section(
            name,
            [
                [
                    *(TableCell(text or "–") for text in (row.item, row.paper, row.code, row.ours)),
                    TableCell(row.effect, tone="bad" if row.large else ""),
                    TableCell(row.reason),
                ]
                for row in moving
                if row.recipe == name
            ],
        )
        for name in dict.fromkeys(row.recipe for row in moving)
    ]
    stated = [row for row in rows if row.equal != "not stated"]
    equal = sum(row.equal == "yes" for row in stated)
    return Table(
        "Where our recipes and the authors' differ",
        "Values of the recipes that may move a score: what the paper states, what the authors' "
        "code does, ours, and the expected effect in points, which is judged and not measured.",
        [text_column(name) for name in ("Value", "Paper", "Code", "Ours", "Effect", "Reason")],
        sections,
        [
            f"Of {len(rows)} values, {len(stated)} are stated by the paper or its code, and "
            f"{equal} "
            f"of these are equal; 'python -m benchmark fidelity {study.name}' prints all of them."
        ],
    )


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
