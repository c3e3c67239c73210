"""Table -> HTML: a ``table`` element for the report, and the same in a small page of its own."""

from __future__ import annotations

from html import escape

from benchmark.report.tables.table import Cell, Line, Table, capped

TALL = 40  # rows from which a table scrolls inside its box
WIDE = 8  # columns from which a table is printed across the page
LIMIT = 250  # rows on a page; the CSV beside it has them all


def to_html(table: Table, name: str, *, limit: int = LIMIT) -> str:
    """Returns the ``figure`` element with caption, scrolling table and notes; all text is escaped."""
    shown, hidden = capped(table, limit)
    kind = "table wide" if len(table.columns) >= WIDE else "table"
    parts = [
        f'<figure class="{kind}" id="table-{escape(name)}">',
        f"<figcaption>{escape(table.caption)}</figcaption>",
    ]
    # A focusable box lets the keyboard scroll a table that is wider than the screen.
    box = "scroll tall" if shown.rows > TALL else "scroll"
    parts.append(
        f'<div class="{box}" tabindex="0" role="region" aria-label="{escape(table.title)}">'
    )
    parts.append("<table class=sortable>")
    parts.append(_head(shown))
    for section in shown.sections:
        parts.append("<tbody>")
        if section.title:
            parts.append(
                f'<tr class="section"><th colspan="{len(table.columns)}" scope="rowgroup">'
            )
            parts.append(f"<span>{escape(section.title)}</span></th></tr>")
        parts.extend(_row(shown, row) for row in section.rows)
        parts.append("</tbody>")
    parts.append("</table></div>")
    notes = [*table.notes]
    if hidden:
        notes.append(f"{hidden} more rows are not shown here; the CSV file has all {table.rows}.")
    if notes:
        parts.append(
            "<ul class=notes>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"
        )
    parts.append("</figure>")
    return "\n".join(parts)


def to_page(table: Table, name: str) -> str:
    """Returns a complete small page with the table alone."""
    style = (
        "body{font:14px/1.5 system-ui,sans-serif;margin:1rem;color-scheme:light dark}.scroll{overflow-x:auto}"
        "table{border-collapse:collapse}th,td{padding:.2rem .6rem;text-align:left;white-space:nowrap}"
        "thead th{border-bottom:1px solid}.num{text-align:right;font-variant-numeric:tabular-nums}"
        ".best{font-weight:700}.second{text-decoration:underline}figure{margin:0}.line{display:block}"
    )
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{escape(table.title)}</title><style>{style}</style>"
    body = f"<h1>{escape(table.title)}</h1>{to_html(table, name)}"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'


def _head(table: Table) -> str:
    rows = table.header_rows()
    lines = ["<thead>"]
    for level, row in enumerate(rows):
        last = level == len(rows) - 1
        cells = []
        for index, (text, span) in enumerate(row):
            kind = ' class="num"' if last and table.columns[index].numeric else ""
            scope = "col" if span == 1 else "colgroup"
            if not text:
                cells.append(f"<td{kind}{_span(span)}></td>")
            else:
                cells.append(f'<th scope="{scope}"{kind}{_span(span)}>{escape(text)}</th>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "".join([*lines, "</thead>"])


def _span(span: int) -> str:
    return f' colspan="{span}"' if span > 1 else ""


def _row(table: Table, row: list[Cell]) -> str:
    cells = []
    for index, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
        # Long words wrap; numbers and names never do.
        kinds = (
            "num" if column.numeric else "words" * (len(cell.text) > 40),
            cell.tone and f"tone-{cell.tone}",
        )
        names = " ".join(kind for kind in kinds if kind)
        text = (
            f"<span class={cell.mark}>{escape(cell.text)}</span>"
            if cell.mark
            else escape(cell.text)
        )
        beside = " class=beside" if cell.lines else ""
        text += f" <small{beside}>{escape(cell.note)}</small>" if cell.note else ""
        text += "".join(_line(line) for line in cell.lines)
        sort = (
            f' data-sort="{cell.numbers[0]:.10g}"'
            if cell.numbers and cell.numbers[0] is not None
            else ""
        )
        tag, scope = ("th", ' scope="row"') if index == 0 else ("td", "")
        kind = f' class="{names}"' if names else ""
        cells.append(f"<{tag}{scope}{kind}{sort}>{text}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>"


def _line(line: Line) -> str:
    tone = f" tone-{line.tone}" if line.tone else ""
    return f'<small class="line{tone}">{escape(line.text)}</small>'
