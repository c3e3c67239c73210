"""Average ranks of the losses over datasets, and which of them differ from the best."""

from typing import Any

from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import metric_label, metric_order
from benchmark.report.numbers import p_value, plain
from benchmark.report.pairs import is_true, loss_cell
from benchmark.report.table import (
    Column,
    Table,
    TableCell,
    grouped,
    number_cell,
    text_column,
)
from benchmark.report.tables import TABLES


@TABLES.register("ranks", display="Average ranks over datasets")
def build(inputs: Inputs) -> Table:
    """Return per setting, batch size and metric the losses from the best average rank on."""
    ranks, study = inputs.some("ranks"), inputs.study
    tests = {
        (row.setting, row.batch_size, row.metric, row.loss, row.against): row
        for row in records(inputs.rank_tests)
    }
    metrics = metric_order(ranks["metric"], study)
    order = ranks[["setting", "batch_size", "metric"]].assign(
        metric=ranks["metric"].map(metrics.index), rank=ranks["rank"]
    )
    rows = []
    best: dict[tuple[str, int, str], str] = {}
    for row in records(ranks.loc[order.sort_values([*order], kind="stable").index]):
        place = (row.setting, row.batch_size, row.metric)
        first = best.setdefault(place, row.loss)
        test = tests.get((*place, first, row.loss))
        rows.append((_heading(row), [loss_cell(row.loss, study), *_cells(row, test)]))
    columns = [
        text_column("Loss"),
        Column(("Average rank",), parts=("rank",)),
        Column(("Behind the best by",), parts=("difference",)),
        Column(("p (Holm)",), parts=("",)),
        text_column("Outcome"),
    ]
    caption = (
        "Rank of each loss by its mean over seeds at the last epoch, 1 for the best, averaged over "
        "datasets; a dataset counts once, by the mean over its splits, and a loss that diverges "
        "ranks last. Friedman's test is whether any ranks differ (by permutation); the pairs are "
        "tested by Demšar's z test with Holm's correction over all pairs."
    )
    return Table("Average ranks over datasets", caption, columns, grouped(rows))


def _heading(row: Any) -> str:
    return (
        f"{metric_label(row.metric)} · {row.setting} · batch size {row.batch_size} · "
        f"{row.datasets} datasets · Friedman p = {p_value(row.p_friedman)} · critical difference "
        f"{plain(row.critical)}"
    )


def _cells(row: Any, test: Any) -> list[TableCell]:
    rank = number_cell(plain, row.rank)
    if test is None:
        return [rank, TableCell(""), TableCell(""), TableCell("best")]
    behind = is_true(test.significant)
    word, tone = ("behind", "bad") if behind else ("not told apart", "unsure")
    outcome = TableCell(word, tone=tone)
    return [rank, number_cell(plain, test.difference), number_cell(p_value, test.p_holm), outcome]
