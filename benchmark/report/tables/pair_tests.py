"""Tests of two losses on the same seeds, and of one loss at two batch sizes."""

from collections.abc import Sequence
from dataclasses import replace

from benchmark.core.words import finite, interval, p_value, percent, plain, points, whole
from benchmark.report.labels import condition_label, dataset_label, metric_label
from benchmark.report.row_types import PairRow
from benchmark.report.study_results import WHERE, StudyResults, records
from benchmark.report.table import Column, Table, TableCell, filled, number_cell, numbers, words
from benchmark.report.tables import TABLES
from benchmark.report.tables.loss_tables import named, ordered

OTHER_FAMILY = (
    "The answer uses the tests of the {family}. Holm's correction covers the tests of one table, "
    "so the same pair has another p here."
)
OF_TESTS = (
    "Two-sided paired t-test over common seeds, test score at the last epoch, with the spread that "
    "all pairs share (p_plain in stats/paired.csv: the pair's own). Differences, intervals and "
    "detectable differences are in percentage points; bold differences are significant after "
    "Holm's correction. The files have p without correction, and d_z, the unbiased effect size of "
    "the pair's own differences. Detectable: the smallest true difference that this many seeds "
    "would have shown with probability 0.8. The interval over classes, where there is one, says "
    "how much the difference depends on the classes that were tested. A loss that diverges where "
    "the other does not has lost, whatever "
    "its other runs score."
)


@TABLES.register("paired", display="Paired tests against the baseline")
def paired(inputs: StudyResults) -> Table:
    """Return the tests of each loss against the study's baseline; positive means better."""
    baseline = inputs.label(inputs.tests("baseline")["against"].iloc[0])
    title = f"Paired tests against {baseline}"
    caption = f"Each loss minus {baseline}."
    return _pair_table(inputs, "baseline", title, caption, [named(inputs)])


@TABLES.register("all_pairs", display="Paired tests of all pairs")
def all_pairs(inputs: StudyResults) -> Table:
    """Return the tests of all pairs of losses; positive means that the first is better."""
    columns = [named(inputs, "First"), named(inputs, "Second", "against")]
    outcomes = ("first higher", "second higher")
    caption = "First loss minus second."
    title = "Paired tests of all pairs"
    return _pair_table(inputs, "pairs", title, caption, columns, outcomes)


@TABLES.register("ablation", display="Ablation")
def ablation(inputs: StudyResults) -> Table:
    """Return per batch size the steps of the study's ablation and their total, with their tests."""

    def step(row: PairRow) -> str:
        total = " (total)" if row.step == "total" else ""
        return f"{inputs.label(row.against)} → {inputs.label(row.loss)}{total}"

    columns = [
        words("Step", step),
        numbers("From", percent, mean="mean_against"),
        numbers("To", percent, mean="mean"),
    ]
    steps = " → ".join(map(inputs.label, inputs.study.comparison.ablation))
    caption = f"Steps {steps}. Means are in percent over the common seeds."
    return _pair_table(inputs, "ablation", "Ablation", caption, columns, ("gain", "loss"))


@TABLES.register("batch_sizes", display="Smallest and largest batch size")
def batch_sizes(inputs: StudyResults) -> Table:
    """Return the test of each loss at its largest batch size against its smallest."""
    tests = inputs.some("batch_sizes")
    difference, span, outcome, _, p_holm, _, detectable, _ = test_columns(
        inputs, outcomes=("rises", "falls")
    )
    columns = [
        named(inputs),
        words("Batch size", lambda row: f"{row.against} → {row.batch_size}"),
        numbers("From", percent, mean="mean_against"),
        numbers("To", percent, mean="mean"),
        difference,
        span,
        outcome,
        p_holm,
        detectable,
        numbers("n", "{:.0f}, {:.0f}".format, n_against="n_against", n="n"),
    ]
    caption = (
        "Runs of two batch sizes share no batches, so they are not paired: Welch's two-sided "
        "t-test of the scores at the last epoch, each side with its own spread. Holm's correction "
        f"at level {inputs.study.comparison.alpha:g} covers the losses of one dataset, split and "
        "metric. Scores are in percent, differences in percentage points. n: runs of both sides. "
        "A loss that diverges at a batch size is compared without it."
    )
    known = tests[tests["metric"].isin(inputs.study.metrics)]
    rows = (
        (f"{metric_label(row.metric)} · {dataset_label(row.dataset, row.setting, row.split)}", row)
        for row in ordered(known, PairRow, inputs, *WHERE, "metric", "loss")
    )
    return filled("Smallest and largest batch size", caption, columns, rows)


def _pair_table(
    inputs: StudyResults,
    kind: str,
    title: str,
    caption: str,
    columns: Sequence[Column],
    outcomes: tuple[str, str] = ("higher", "lower"),
) -> Table:
    """Return the table of tests, a section per metric and condition; ``columns`` come first."""
    tests = inputs.tests(kind)
    known = tests[tests["metric"].isin(inputs.study.metrics)]
    by = ["dataset", "setting", "split", "metric", "batch_size", "loss", "against"]
    if "step" in known:  # an ablation keeps its order: "total" comes after all numbers
        by.insert(5, "step")
    rows = (
        (f"{metric_label(row.metric)} · {condition_label(row)}", row)
        for row in ordered(known, PairRow, inputs, *by)
    )
    families = "; ".join(
        f"{row.family} ({int(finite(row.family_size) or 0)} tests)"
        for row in records(tests.drop_duplicates("family"), PairRow)
    )
    over_classes = bool(tests["query_low"].notna().any())
    notes = [f"Holm families at level {inputs.study.comparison.alpha:g}: {families}."]
    answering = "baseline" if inputs.ablation.empty else "ablation"
    if kind != answering:
        notes.insert(0, OTHER_FAMILY.format(family=answering))
    return filled(
        title,
        f"{caption} {OF_TESTS}",
        [*columns, *test_columns(inputs, over_classes, outcomes)],
        rows,
        notes,
    )


def test_columns(
    inputs: StudyResults, queries: bool = False, outcomes: tuple[str, str] = ("higher", "lower")
) -> list[Column]:
    """Return the columns of a test, a row of ``paired.csv``; the CSV has differences in [0, 1].

    ``outcomes`` say of a significant difference that it is above or below zero.
    """
    above = (outcomes[0], "good")
    below = (outcomes[1], "bad")

    def difference(row: PairRow) -> TableCell:
        return number_cell(points, row.difference, mark="best" if row.significant else "")

    def outcome(row: PairRow) -> TableCell:
        lost = getattr(row, "lost", "")
        if lost:
            word, tone = below if lost == row.loss else above
            return TableCell(f"{word}: divergence", tone=tone)
        if finite(row.p_holm) is None:
            return TableCell("no test", tone="muted")
        if not row.significant:
            return TableCell("not significant", tone="unsure")
        word, tone = above if row.difference > 0 else below
        return TableCell(word, tone=tone)

    def pairs(row: PairRow) -> TableCell:
        return number_cell(whole, row.n, note=row.note)

    sure = inputs.confidence
    over_classes = []
    if queries:
        head = f"{sure} over classes"
        over_classes.append(numbers(head, interval, low="query_low", high="query_high"))
    return [
        Column(("Difference",), parts=("difference",), cell=difference),
        numbers(f"{sure} interval", interval, low="ci_low", high="ci_high"),
        *over_classes,
        words("Outcome", outcome),
        replace(numbers("p", p_value, "p"), paged=False),
        numbers("p (Holm)", p_value, "p_holm"),
        replace(numbers("d_z", plain, "d_z"), paged=False),
        numbers("Detectable", lambda value: points(value).lstrip("+"), "detectable"),
        Column(("n",), parts=("",), cell=pairs),
    ]
