"""The columns of the verdicts in docs/verdicts.md are those that the schema declares."""

from __future__ import annotations

from pages import ROOT

from benchmark.verdicts.verdicts import FILED, VERDICT

PAGE = ROOT / "docs" / "verdicts.md"


def table_of_columns() -> str:
    """Return the table of the page, as the schema has it."""
    rows = ["| column | unit | meaning |", "|---|---|---|"]
    for name in FILED:
        column = VERDICT[name]
        rows.append(f"| `{name}` | {column.unit or column.kind} | {column.meaning} |")
    return "\n".join(rows)


def test_the_page_has_the_columns_of_the_schema():
    part = PAGE.read_text(encoding="utf-8").split("## Columns\n")[1].split("\n## ")[0]
    shown = "\n".join(line for line in part.splitlines() if line.startswith("|"))
    assert shown == table_of_columns(), f"write in its place:\n{table_of_columns()}"
