"""Table -> Markdown (GitHub flavour). Header levels are joined, sections become bold rows."""

from __future__ import annotations

from benchmark.report.tables.table import Cell, Table


def to_markdown(table: Table) -> str:
    """Returns title, caption, table and notes."""
    heads = [" · ".join(part for part in column.header if part) for column in table.columns]
    lines = [f"### {_escape(table.title)}", "", _escape(table.caption), ""]
    lines.append(_line([_escape(head) for head in heads]))
    lines.append(_line(["---:" if column.numeric else ":---" for column in table.columns]))
    for section in table.sections:
        if section.title:
            lines.append(_line([f"**{_escape(section.title)}**", *[""] * (len(heads) - 1)]))
        lines.extend(_line([_cell(cell) for cell in row]) for row in section.rows)
    if table.notes:
        lines.extend(["", *(f"- {_escape(note)}" for note in table.notes)])
    return "\n".join(lines) + "\n"


def _line(fields: list[str]) -> str:
    return "| " + " | ".join(fields) + " |"


def _cell(cell: Cell) -> str:
    text = _escape(cell.text)
    text = {"best": f"**{text}**", "second": f"<u>{text}</u>"}.get(cell.mark, text)
    text += f" <sub>{_escape(cell.note)}</sub>" if cell.note else ""
    return "<br>".join([text, *(f"<sub>{_escape(line.text)}</sub>" for line in cell.lines)])


def _escape(text: str) -> str:
    for character in "\\|*_`":
        text = text.replace(character, "\\" + character)
    return text.replace("<", "&lt;").replace("\n", " ")
