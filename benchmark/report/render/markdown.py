"""Table -> Markdown (GitHub flavour). Header levels are joined, sections become bold rows."""

from benchmark.report.render.table import Table, TableCell

_MARKS = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}


def to_markdown(table: Table) -> str:
    """Return title, caption, table and notes."""
    heads = [" · ".join(part for part in column.header if part) for column in table.columns]
    lines = [f"### {_escape(table.title)}", "", _escape(table.caption), ""]
    lines.append(_row([_escape(head) for head in heads]))
    lines.append(_row(["---:" if column.numeric else ":---" for column in table.columns]))
    for section in table.sections:
        if section.title:
            lines.append(_row([f"**{_escape(section.title)}**", *[""] * (len(heads) - 1)]))
        lines.extend(_row([_cell(cell) for cell in row]) for row in section.rows)
    if table.notes:
        lines.extend(["", *(f"- {_escape(note)}" for note in table.notes)])
    return "\n".join(lines) + "\n"


def _row(fields: list[str]) -> str:
    return "| " + " | ".join(fields) + " |"


def _cell(cell: TableCell) -> str:
    text = _MARKS[cell.mark].format(_escape(cell.text))
    text += f" <sub>{_escape(cell.note)}</sub>" if cell.note else ""
    return "<br>".join([text, *(f"<sub>{_escape(line.text)}</sub>" for line in cell.lines)])


def _escape(text: str) -> str:
    for character in "\\|*_`":
        text = text.replace(character, "\\" + character)
    for mark in "([:":  # of links and pictures, which would be fetched
        text = text.replace(f"]{mark}", f"]\\{mark}")
    return text.replace("<", "&lt;").replace("\n", " ")
