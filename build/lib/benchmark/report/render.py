r"""Table -> CSV, Markdown, LaTeX and HTML.

CSV has full precision: a column per number or word behind a cell, sections first. Markdown is that
of GitHub: header levels are joined, sections become bold rows. LaTeX is a fragment to ``\input``,
which needs booktabs, longtable and graphicx. HTML is a ``figure`` element for the report, and the
same in a small page of its own.
"""

import csv
import io
import re
from itertools import chain

from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmark.report.table import Column, Table, TableCell

_HARMLESS = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?\Z|(?![=+\-@\t\r])")
_MARKDOWN_MARKS = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}
LATEX_LONG = 45  # rows that still fit on one page
LATEX_WIDE = 6  # columns that still fit across one page at footnote size
_LATEX_MARKS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
_MATHS = {
    "<": "<", ">": ">", "±": r"\pm", "−": "-", "×": r"\times", "·": r"\cdot", "→": r"\rightarrow",
    "≥": r"\geq", "≤": r"\leq", "∗": r"\ast", "α": r"\alpha", "β": r"\beta", "λ": r"\lambda",
    "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau",
}  # fmt: skip
_SPECIAL = str.maketrans(
    {sign: f"${command}$" for sign, command in _MATHS.items()}
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "–": "--",
        "†": r"\dag{}",
        "‡": r"\ddag{}",
        "\n": " ",
    }
)
TEMPLATES = Environment(  # they escape every text
    loader=PackageLoader("benchmark.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TALL = 40  # rows from which a table scrolls inside its box
WIDE = 8  # columns from which a table is printed across the page
LIMIT = 250  # rows on a page; the CSV beside it has them all


def to_csv(table: Table) -> str:
    """Return the CSV text; scores stay in [0, 1], absent numbers are empty."""
    sectioned = any(section.title for section in table.sections)
    rows = [row for section in table.sections for row in section.rows]
    noted = [
        bool(column.parts) and any(cell.note or not cell.numbers for cell in cells)
        for column, *cells in zip(table.columns, *rows, strict=True)
    ]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [_names(*each) for each in zip(table.columns, noted, strict=True)]
    writer.writerow([*["section"] * sectioned, *chain.from_iterable(names)])
    for section in table.sections:
        for row in section.rows:
            fields = [section.title] * sectioned
            for column, note, cell in zip(table.columns, noted, row, strict=True):
                fields.extend(_fields(column, note, cell))
            writer.writerow(map(as_text, fields))
    return stream.getvalue()


def as_text(words: str) -> str:
    """Return words that no spreadsheet takes for a formula; numbers stay as they are."""
    return words if _HARMLESS.match(words) else f"'{words}"


def _names(column: Column, noted: bool) -> list[str]:
    name = " ".join(part for part in column.header if part)
    names = [f"{name} {part}".strip() for part in (*column.parts, *column.words)]
    names = names if column.parts else [name, *names]
    return [*names, f"{name} note"] if noted else names


def _fields(column: Column, noted: bool, cell: TableCell) -> list[str]:
    words = [*(cell.words or ("",) * len(column.words))]
    if not column.parts:
        return [cell.text, *words]
    numbers = cell.numbers or (None,) * len(column.parts)
    fields = ["" if number is None else f"{number:.10g}" for number in numbers] + words
    # A cell without numbers says why in words ("missing"), which belongs into the note.
    return [*fields, cell.note if cell.numbers else cell.text] if noted else fields


def to_markdown(table: Table) -> str:
    """Return title, caption, table and notes."""
    heads = [" · ".join(part for part in column.header if part) for column in table.columns]
    lines = [f"### {_markdown_escape(table.title)}", "", _markdown_escape(table.caption), ""]
    lines.append(_row([_markdown_escape(head) for head in heads]))
    lines.append(_row(["---:" if column.numeric else ":---" for column in table.columns]))
    for section in table.sections:
        if section.title:
            lines.append(_row([f"**{_markdown_escape(section.title)}**", *[""] * (len(heads) - 1)]))
        lines.extend(_row([_markdown_cell(cell) for cell in row]) for row in section.rows)
    if table.notes:
        lines.extend(["", *(f"- {_markdown_escape(note)}" for note in table.notes)])
    return "\n".join(lines) + "\n"


def _row(fields: list[str]) -> str:
    return "| " + " | ".join(fields) + " |"


def _markdown_cell(cell: TableCell) -> str:
    text = _MARKDOWN_MARKS[cell.mark].format(_markdown_escape(cell.text))
    text += f" <sub>{_markdown_escape(cell.note)}</sub>" if cell.note else ""
    return "<br>".join(
        [text, *(f"<sub>{_markdown_escape(line.text)}</sub>" for line in cell.lines)]
    )


def _markdown_escape(text: str) -> str:
    for character in "\\|*_`":
        text = text.replace(character, "\\" + character)
    for mark in "([:":  # of links and pictures, which would be fetched
        text = text.replace(f"]{mark}", f"]\\{mark}")
    return text.replace("<", "&lt;").replace("\n", " ")


def to_latex(table: Table, label: str) -> str:
    """Return a ``table`` environment, or a ``longtable`` when it would not fit on a page."""
    align = "".join("r" if column.numeric else "l" for column in table.columns)
    head = ["\\toprule", *_head(table), "\\midrule"]
    title = rf"\caption{{{escape(f'{table.title}. {table.caption}')}}}\label{{tab:{label}}}"
    notes = [rf"\par\smallskip\footnotesize {escape(' '.join(table.notes))}"] * bool(table.notes)
    body = [*_body(table), r"\bottomrule"]
    lines = ["% needs \\usepackage{booktabs,longtable,graphicx}"]
    if table.rows > LATEX_LONG:
        lines += [r"{\scriptsize", rf"\begin{{longtable}}{{{align}}}", title + r"\\"]
        lines += [*head, r"\endfirsthead", *head, r"\endhead"]
        lines += [*body, r"\end{longtable}", *notes, "}"]
    else:
        wide = len(table.columns) > LATEX_WIDE
        lines += [r"\begin{table}[t]", r"\centering\footnotesize", title]
        lines += [r"\resizebox{\linewidth}{!}{%"] * wide
        lines += [rf"\begin{{tabular}}{{{align}}}", *head, *body]
        lines += [r"\end{tabular}" + "}" * wide, *notes, r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Return ``text`` with every character that LaTeX would read as a command made harmless."""
    return text.translate(_SPECIAL)


def _head(table: Table) -> list[str]:
    rows = table.header_rows()
    lines = []
    for row in rows:
        fields, rules, position = [], "", 1
        for text, span in row:
            field = escape(text)
            fields.append(rf"\multicolumn{{{span}}}{{c}}{{{field}}}" if span > 1 else field)
            if span > 1 and text and row is not rows[-1]:
                rules += rf"\cmidrule(lr){{{position}-{position + span - 1}}}"
            position += span
        lines.append(" & ".join(fields) + r" \\" + rules)
    return lines


def _body(table: Table) -> list[str]:
    lines: list[str] = []
    for section in table.sections:
        if section.title:
            lines += [r"\midrule"] * bool(lines)
            title = rf"\textit{{{escape(section.title)}}}"
            lines.append(rf"\multicolumn{{{len(table.columns)}}}{{l}}{{{title}}} \\")
        lines.extend(" & ".join(map(_latex_cell, row)) + r" \\" for row in section.rows)
    return lines


def _latex_cell(cell: TableCell) -> str:
    text = _LATEX_MARKS[cell.mark] % escape(cell.text)
    text += rf" {{\tiny {escape(cell.note)}}}" if cell.note else ""
    if cell.lines:
        below = "".join(rf"\\{{\tiny {escape(line.text)}}}" for line in cell.lines)
        return rf"\shortstack[{'r' if cell.numbers else 'l'}]{{{text}{below}}}"
    # A row break before a cell would read its bracket as an optional argument.
    return "{}" + text if text.startswith("[") else text


def to_html(table: Table, name: str, *, limit: int = LIMIT) -> str:
    """Return the element with caption, scrolling table and notes; all text is escaped."""
    first = table.first_rows(limit)
    notes = [*table.notes]
    if table.rows > limit:
        hidden = table.rows - limit
        notes.append(f"{hidden} more rows are not shown here; the CSV file has all {table.rows}.")
    return TEMPLATES.get_template("table.html.j2").render(
        table=first,
        name=name,
        notes=notes,
        wide=len(table.columns) >= WIDE,
        tall=first.rows > TALL,
        zip=zip,
    )


def to_page(table: Table, name: str) -> str:
    """Return a complete small page with the table alone."""
    content = to_html(table, name)
    return TEMPLATES.get_template("table_page.html.j2").render(table=table, content=content)
