r"""Table -> CSV, Markdown, LaTeX and HTML.

CSV has full precision: a column per number or word behind a cell, sections first. Markdown is that
of GitHub: header levels are joined, sections become bold rows. LaTeX is a fragment to ``\input``,
which needs booktabs, longtable and graphicx. HTML is a ``figure`` element for the report, and the
same in a small page of its own.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmark.core.words import DASH
from benchmark.report.table import Section, Table, TableCell

_HARMLESS = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?\Z|(?![=+\-@\t\r])")
_MARKDOWN_MARKS = {"best": "**{}**", "second": "<u>{}</u>", "own": "**{}**", "": "{}"}
LATEX_LONG = 45  # rows that still fit on one page
LATEX_WIDE = 6  # columns that still fit across one page at footnote size
_LATEX_MARKS = {"best": r"\textbf{%s}", "second": r"\underline{%s}"}
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
LETTERS = 14  # of a header that are as wide as a score
WIDE = 8  # columns from which a table is printed across the page
LIMIT = 250  # rows on a page; the CSV beside it has them all


def to_csv(table: Table) -> str:
    """Return the CSV text; scores stay in [0, 1], absent numbers are empty."""
    sectioned = any(section.title for section in table.sections)
    rows = [row for section in table.sections for row in section.rows]
    names = ["section"] if sectioned else []
    noted = []
    for column, *cells in zip(table.columns, *rows, strict=True):
        name = " ".join(filter(None, column.header))
        has_notes = any(cell.note or not cell.numbers for cell in cells)
        noted.append(bool(column.parts) and has_notes)
        if not column.parts:
            names.append(name)
        names += [f"{name} {part}".strip() for part in (*column.parts, *column.words)]
        if noted[-1]:
            names.append(f"{name} note")
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for section in table.sections:
        for row in section.rows:
            fields = [section.title] if sectioned else []
            for column, has_note, cell in zip(table.columns, noted, row, strict=True):
                if column.parts:
                    numbers = cell.numbers or (None,) * len(column.parts)
                    fields += ["" if number is None else f"{number:.10g}" for number in numbers]
                else:
                    fields.append(cell.text)
                fields += cell.words or ("",) * len(column.words)
                if has_note:  # a cell without numbers has words instead ("missing")
                    fields.append(cell.note if cell.numbers else cell.text)
            writer.writerow(map(as_text, fields))
    return stream.getvalue()


def as_text(words: str) -> str:
    """Return words that no spreadsheet takes for a formula; numbers stay as they are."""
    return words if _HARMLESS.match(words) else f"'{words}"


def to_markdown(table: Table) -> str:
    """Return title, caption, table and notes."""

    def cell_text(cell: TableCell) -> str:
        text = _MARKDOWN_MARKS[cell.mark].format(_plain(cell.text))
        if cell.note:
            text += f" <sub>{_plain(cell.note)}</sub>"
        for line in cell.lines:
            text += f"<br><sub>{_plain(line.text)}</sub>"
        return text

    rows = [
        [_plain(" · ".join(filter(None, column.header))) for column in table.columns],
        ["---:" if column.numeric else ":---" for column in table.columns],
    ]
    for section in table.sections:
        if section.title:
            empty = [""] * (len(table.columns) - 1)
            rows.append([f"**{_plain(section.title)}**", *empty])
        rows += [[*map(cell_text, row)] for row in section.rows]
    lines = [f"### {_plain(table.title)}", "", _plain(table.caption), ""]
    lines += [f"| {' | '.join(fields)} |" for fields in rows]
    if table.notes:
        lines += ["", *(f"- {_plain(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return text in which nothing is Markdown; links and pictures would be fetched."""
    text = re.sub(r"([\\|*_`])", r"\\\1", text)
    return re.sub(r"\](?=[(\[:])", r"]\\", text).replace("<", "&lt;").replace("\n", " ")


def to_latex(table: Table, label: str) -> str:
    """Return a ``table`` environment, or a ``longtable`` when it would not fit on a page."""
    align = "".join("r" if column.numeric else "l" for column in table.columns)
    head = ["\\toprule"]
    header_rows = table.header_rows()
    for row in header_rows:
        fields = []
        rules = ""
        position = 1
        for text, span in row:
            field = escape(text)
            fields.append(rf"\multicolumn{{{span}}}{{c}}{{{field}}}" if span > 1 else field)
            if span > 1 and text and row is not header_rows[-1]:
                rules += rf"\cmidrule(lr){{{position}-{position + span - 1}}}"
            position += span
        head.append(" & ".join(fields) + r" \\" + rules)
    head.append("\\midrule")
    body: list[str] = []
    for section in table.sections:
        if section.title:
            if body:
                body.append(r"\midrule")
            title = rf"\textit{{{escape(section.title)}}}"
            body.append(rf"\multicolumn{{{len(table.columns)}}}{{l}}{{{title}}} \\")
        body += [" & ".join(map(_latex_cell, row)) + r" \\" for row in section.rows]
    body.append(r"\bottomrule")
    title = rf"\caption{{{escape(f'{table.title}. {table.caption}')}}}\label{{tab:{label}}}"
    notes = []
    if table.notes:
        notes.append(rf"\par\smallskip\footnotesize {escape(' '.join(table.notes))}")
    lines = ["% needs \\usepackage{booktabs,longtable,graphicx}"]
    if table.rows > LATEX_LONG:
        lines += [r"{\scriptsize", rf"\begin{{longtable}}{{{align}}}", title + r"\\"]
        lines += [*head, r"\endfirsthead", *head, r"\endhead"]
        lines += [*body, r"\end{longtable}", *notes, "}"]
    else:
        begin = rf"\begin{{tabular}}{{{align}}}"
        end = r"\end{tabular}"
        if len(table.columns) > LATEX_WIDE:
            begin = r"\resizebox{\linewidth}{!}{%" + "\n" + begin
            end += "}"
        lines += [r"\begin{table}[t]", r"\centering\footnotesize", title]
        lines += [begin, *head, *body, end, *notes, r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Return ``text`` with every character that LaTeX would read as a command made harmless."""
    return text.translate(_SPECIAL)


def _latex_cell(cell: TableCell) -> str:
    text = _LATEX_MARKS.get(cell.mark, "%s") % escape(cell.text)
    if cell.note:
        text += rf" {{\tiny {escape(cell.note)}}}"
    if cell.lines:
        below = "".join(rf"\\{{\tiny {escape(line.text)}}}" for line in cell.lines)
        align = "r" if cell.numbers else "l"
        return rf"\shortstack[{align}]{{{text}{below}}}"
    if text.startswith("["):  # a row break before the cell would take it for an argument
        return f"{{}}{text}"
    return text


def to_html(table: Table, name: str, *, limit: int = LIMIT) -> str:
    """Return the element with caption, scrolling table and notes; all text is escaped."""
    notes = [*table.notes]
    left = limit
    sections = []
    for section in table.sections:
        if left > 0:
            sections.append(Section(section.title, section.rows[:left]))
        left -= len(section.rows)
    if left < 0:
        notes.append(f"{-left} more rows are not shown here; the CSV file has all {table.rows}.")
    shown = [at for at, column in enumerate(table.columns) if column.paged]
    opened = table.opened if table.opened is not None else len(sections)
    blocks = [*_across(table, shown)]
    parts = [(_part(table, block, sections[:opened], shown), False) for block in blocks]
    if folded := sections[opened:]:
        parts += [(_part(table, block, folded, shown), True) for block in blocks]
    return TEMPLATES.get_template("table.html.j2").render(
        table=table,
        parts=parts,
        name=name,
        notes=notes,
        wide=len(table.columns) >= WIDE,
        tall=min(table.rows, limit) > TALL,
        zip=zip,
    )


def _across(table: Table, shown: list[int]) -> Iterator[list[int]]:
    """Yield the columns of each block; equal upper heads stay together where they can."""
    texts = [at for at in shown if not table.columns[at].numeric]
    numeric = [at for at in shown if table.columns[at].numeric]
    groups = [[*group] for _, group in groupby(numeric, lambda at: table.columns[at].header[:-1])]
    widths: dict[int, float] = {}  # 1 is a column with a short name
    for same in groups:
        for at in same:
            *above, lowest = map(len, table.columns[at].header)
            widths[at] = max(1, lowest / LETTERS, max(above, default=0) / LETTERS / len(same))
    if table.across is None or sum(widths.values()) <= table.across:
        yield shown
        return
    block: list[int] = []
    for same in groups:
        for at in same:
            added = same if at == same[0] else [at]
            width = sum(widths[column] for column in [*block, *added])
            if block and width > table.across:
                yield [*texts, *block]
                block = []
            block.append(at)
    yield [*texts, *block]


def _part(table: Table, columns: list[int], sections: list[Section], shown: list[int]) -> Table:
    """Return some of the columns shown, without rows that have all their numbers in others."""
    others = [at for at in shown if at not in columns]

    def empty(row: Sequence[TableCell], some: Iterable[int]) -> bool:
        return all(row[at].text == DASH for at in some if table.columns[at].numeric)

    rows = []
    for each in sections:
        kept = [row for row in each.rows if empty(row, others) or not empty(row, columns)]
        if kept:  # a heading stands above no empty block
            rows.append(Section(each.title, [[row[at] for at in columns] for row in kept]))
    return replace(table, columns=[table.columns[at] for at in columns], sections=rows)


def to_page(table: Table, content: str) -> str:
    """Return a complete small page with the table alone, whose element is ``content``."""
    return TEMPLATES.get_template("table_page.html.j2").render(table=table, content=content)
