"""Table -> LaTeX with booktabs: a fragment to ``\\input``; needs the packages booktabs, longtable and graphicx."""

from __future__ import annotations

from benchmark.report.tables.table import Cell, Table

LONG = 45  # rows that still fit on one page
WIDE = 6  # columns that still fit across one page at footnote size

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "−": r"$-$",
    "–": r"--",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "→": r"$\rightarrow$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "∗": r"$\ast$",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "λ": r"$\lambda$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "\n": " ",
}


def to_latex(table: Table, label: str) -> str:
    """Returns a ``table`` environment, or a ``longtable`` when it would not fit on a page."""
    align = "".join("r" if column.numeric else "l" for column in table.columns)
    head, body = _head(table), _body(table)
    title = rf"\caption{{{escape(table.title)}. {escape(table.caption)}}}\label{{tab:{label}}}"
    notes = [rf"\par\smallskip\footnotesize {escape(' '.join(table.notes))}"] if table.notes else []
    lines = ["% needs \\usepackage{booktabs,longtable,graphicx}"]
    if table.rows > LONG:
        lines += [
            r"{\scriptsize",
            rf"\begin{{longtable}}{{{align}}}",
            title + r"\\",
            r"\toprule",
            *head,
        ]
        lines += [r"\midrule", r"\endfirsthead", r"\toprule", *head, r"\midrule", r"\endhead"]
        lines += [*body, r"\bottomrule", r"\end{longtable}", *notes, "}"]
    else:
        wide = len(table.columns) > WIDE
        lines += [r"\begin{table}[t]", r"\centering\footnotesize", title]
        lines += [r"\resizebox{\linewidth}{!}{%"] if wide else []
        lines += [
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            *head,
            r"\midrule",
            *body,
            r"\bottomrule",
        ]
        lines += [r"\end{tabular}" + ("}" if wide else ""), *notes, r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Returns ``text`` with every character that LaTeX would read as a command made harmless."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _head(table: Table) -> list[str]:
    rows = table.header_rows()
    lines = []
    for level, row in enumerate(rows):
        fields, rules, position = [], [], 1
        for text, span in row:
            fields.append(
                rf"\multicolumn{{{span}}}{{c}}{{{escape(text)}}}" if span > 1 else escape(text)
            )
            if span > 1 and text and level < len(rows) - 1:
                rules.append(rf"\cmidrule(lr){{{position}-{position + span - 1}}}")
            position += span
        lines.append(" & ".join(fields) + r" \\" + "".join(rules))
    return lines


def _body(table: Table) -> list[str]:
    lines = []
    for index, section in enumerate(table.sections):
        if section.title:
            lines += [r"\midrule"] if index else []
            lines.append(
                rf"\multicolumn{{{len(table.columns)}}}{{l}}{{\textit{{{escape(section.title)}}}}} \\"
            )
        lines.extend(" & ".join(_cell(cell) for cell in row) + r" \\" for row in section.rows)
    return lines


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    text = {"best": rf"\textbf{{{text}}}", "second": rf"\underline{{{text}}}"}.get(cell.mark, text)
    text += rf" {{\tiny {escape(cell.note)}}}" if cell.note else ""
    if cell.lines:
        below = "".join(rf"\\{{\tiny {escape(line.text)}}}" for line in cell.lines)
        return rf"\shortstack[{'r' if cell.numbers else 'l'}]{{{text}{below}}}"
    # A row that starts with a bracket would be read as the optional argument of the row break before it.
    return "{}" + text if text.startswith("[") else text
