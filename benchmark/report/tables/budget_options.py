"""Which options mattered: the share of the trials' scores that each explains."""

from __future__ import annotations

from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import loss_label, loss_order
from benchmark.report.numbers import p_value, plain, signed
from benchmark.report.render.table import (
    Column,
    Section,
    Table,
    TableCell,
    number_cell,
    text_column,
)
from benchmark.report.tables import TABLES

TITLE = "Which options mattered"


@TABLES.register("budget_options", display=TITLE, of_trials=True)
def build(inputs: Inputs) -> Table:
    """Return one row per loss and option, the most important option of each loss first."""
    options = inputs.budget("budget_options")
    sections = []
    for dataset, part in options.groupby("dataset", sort=False):
        lines = []
        for loss in loss_order(part["loss"], inputs.study):
            here = part[part["loss"] == loss].sort_values("share", ascending=False, kind="stable")
            for number, row in enumerate(records(here)):
                lines.append(
                    [
                        TableCell(loss_label(loss, inputs.study) if number == 0 else ""),
                        TableCell(
                            row.option.split(".", 1)[1] if row.option[0] == "r" else row.option
                        ),
                        number_cell(lambda value: plain(100 * value, 0), row.share),
                        number_cell(signed, row.rho),
                        number_cell(p_value, row.p),
                    ]
                )
        sections.append(Section(str(dataset), lines))
    caption = (
        "How much of the variance of the trials' ranks lies between low, middle and high values of "
        "an option, less what chance alone would put there (percent); Spearman's rho; p of Kruskal "
        "and Wallis, not corrected. A stand-in for functional ANOVA, which so few trials cannot "
        "carry: interactions are not seen."
    )
    columns = [
        text_column("Loss"),
        text_column("Option"),
        *(Column((name,), parts=(part,)) for name, part in (("Share", "share"), ("rho", "rho"))),
        Column(("p",), parts=("p",)),
    ]
    return Table(TITLE, caption, columns, sections)
