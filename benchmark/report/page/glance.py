"""What a reader must know before the tables: counts of runs and verdicts, and every reason for caution."""

from __future__ import annotations

import pandas as pd

from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS, NOT_RUN, VERDICTS
from benchmark.report.tables.inputs import Inputs
from benchmark.report.tables.labels import metric_label
from benchmark.report.tables.numbers import count
from benchmark.report.tables.published import VERDICT_TONES
from benchmark.report.tables.select import run_states

CLAIM_TONES = {
    "supported": "good",
    "contradicted": "bad",
    "inconclusive": "unsure",
    "not_run": "muted",
}
STATES = {"ok": "good", "diverged": "bad", "failed": "bad", "stale": "unsure", "missing": "muted"}


def run_counts(inputs: Inputs) -> list[tuple[str, int, str]]:
    """Returns (status, number, tone) of the study's runs; "ok" is always there."""
    counts = run_states(inputs.runs)["status"].astype(str).value_counts()
    return [
        (name, int(counts.get(name, 0)), tone)
        for name, tone in STATES.items()
        if name == "ok" or name in counts
    ]


def verdict_counts(inputs: Inputs) -> list[tuple[str, int, str, str]]:
    """Returns (verdict, number, tone, meaning) over all reference numbers; empty without references."""
    verdicts = inputs.stats["verdicts"]
    if verdicts.empty or "verdict" not in verdicts:
        return []
    counts = verdicts["verdict"].value_counts()
    return [
        (name.replace("_", " "), int(counts.get(name, 0)), VERDICT_TONES[name], meaning)
        for name, meaning in VERDICTS.items()
    ]


def claims_reading(table: pd.DataFrame, stand_in: str | None) -> str:
    """Returns the reading of the claims that counts: "published", or "here" on stand-in data and wherever no claim
    could be tested under its paper's own conditions."""
    published = table[table["reading"] == "published"]
    return "here" if stand_in or (published["verdict"] == NOT_RUN).all() else "published"


def claim_counts(inputs: Inputs) -> list[tuple[str, int, str, str]]:
    """Returns (verdict, number, tone, meaning) over the papers' claims; empty when the study has none."""
    table = inputs.stats.get("claims", pd.DataFrame())
    if table.empty:
        return []
    reading = claims_reading(table, getattr(inputs.study, "stand_in", None))
    counts = table.loc[table["reading"] == reading, "verdict"].value_counts()
    return [
        (name.replace("_", " "), int(counts.get(name, 0)), CLAIM_TONES[name], meaning)
        for name, meaning in CLAIM_VERDICTS.items()
    ]


def claims_words(inputs: Inputs) -> str:
    """Returns which question the counts of claims answer; empty without claims."""
    table = inputs.stats.get("claims", pd.DataFrame())
    if table.empty:
        return ""
    if claims_reading(table, getattr(inputs.study, "stand_in", None)) == "published":
        return "Claims of the papers, under their own conditions"
    return "Claims of the papers, asked of what was run here"


def notices(inputs: Inputs) -> list[str]:
    """Returns the reasons for caution, the gravest first; empty when the study is complete and uniform."""
    found = []
    states = run_states(inputs.runs)
    if states.empty:
        found.append(
            "No run is recorded for this study: its grid is empty, or nothing has been collected yet."
        )
    counts = states["status"].astype(str).value_counts()
    unfinished = int(sum(counts.get(name, 0) for name in ("missing", "failed", "stale")))
    if unfinished:
        found.append(
            f"Partial results: {unfinished} of {count(len(states), 'run')} have no usable result. "
            "Means, tests and figures use the finished runs only and can change."
        )
    if counts.get("diverged"):
        found.append(
            f"{count(int(counts['diverged']), 'run')} diverged. They are results, listed below, and enter no mean."
        )
    finished = states[states["status"] == "ok"]
    found.extend(_without_metric(inputs))
    if len(finished):
        seeds = finished.groupby(["dataset", "setting", "loss", "batch_size"], observed=True)[
            "seed"
        ].nunique()
        if seeds.max() == 1:
            found.append(
                "One seed only: there is no spread, no interval and no test, so no difference can be judged."
            )
    recorded = [*inputs.provenance.get("errors", []), *inputs.provenance.get("warnings", [])]
    found.extend(f"{text[:1].upper()}{text[1:]}." for text in recorded)
    if not recorded:
        for column, what in (("code_version", "code versions"), ("platform", "platforms")):
            versions = sorted({value for value in finished[column].astype(str) if value})
            if len(versions) > 1:
                found.append(f"Runs of different {what}: {', '.join(versions)}.")
    found.extend(_stand_in(inputs))
    found.extend(
        f"{name} is not there, so what is made from it is left out." for name in inputs.missing
    )
    return found


def _without_metric(inputs: Inputs) -> list[str]:
    """Returns a line for each metric of the study that some finished runs lack; a place may give none of a metric,
    as a block of a study may ask for fewer."""
    runs = inputs.runs[inputs.runs["status"] == "ok"]
    finished = runs.groupby(["dataset", "setting"], observed=True)["run_id"].nunique()
    last = runs[(runs["selection"] == "last") & (runs["split"] != "train") & runs["value"].notna()]
    found = []
    for metric in inputs.study.metrics if len(finished) else ():
        having = (
            last[last["metric"] == metric]
            .groupby(["dataset", "setting"], observed=True)["run_id"]
            .nunique()
        )
        if having.empty:
            found.append(f"No finished run has {metric_label(metric)}, which the study asks for.")
            continue
        lacking = int((finished.reindex(having.index) - having).sum())
        if lacking:
            found.append(
                f"{count(lacking, 'finished run')} without a value of {metric_label(metric)}: its means, tests and "
                "figures are those of the others."
            )
    return found


def _stand_in(inputs: Inputs) -> list[str]:
    """Returns a note on a stand-in, or when published numbers exist but none was measured under its own conditions."""
    stand_in = getattr(inputs.study, "stand_in", None)
    if stand_in:
        return [
            f"Stand-in data: every run used {stand_in} and a small network in place of the study's own data sets and "
            "backbones. This page shows what the study's tables and figures look like; it reproduces nothing."
        ]
    verdicts = inputs.stats["verdicts"]
    if verdicts.empty:
        return []
    published = verdicts[verdicts["source"] != "frozen"]
    if published.empty or not (published["verdict"] == NOT_RUN).all():
        return []
    datasets = ", ".join(sorted(inputs.runs["dataset"].astype(str).unique()))
    return [
        "Stand-in data: none of the published numbers was measured here, because their data sets were not run. "
        f"What {datasets or 'this study'} shows answers the same questions on other data and is no reproduction."
    ]
