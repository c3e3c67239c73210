r"""Table -> LaTeX: a fragment to ``\input``; needs booktabs, longtable and graphicx."""

from benchmark.report.render.table import Table, TableCell

LONG = 45  # rows that still fit on one page
WIDE = 6  # columns that still fit across one page at footnote size

_MARKS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
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


def to_latex(table: Table, label: str) -> str:
    """Return a ``table`` environment, or a ``longtable`` when it would not fit on a page."""
    align = "".join("r" if column.numeric else "l" for column in table.columns)
    head = ["\\toprule", *_head(table), "\\midrule"]
    title = rf"\caption{{{escape(f'{table.title}. {table.caption}')}}}\label{{tab:{label}}}"
    notes = [rf"\par\smallskip\footnotesize {escape(' '.join(table.notes))}"] * bool(table.notes)
    body = [*_body(table), r"\bottomrule"]
    lines = ["% needs \\usepackage{booktabs,longtable,graphicx}"]
    if table.rows > LONG:
        lines += [r"{\scriptsize", rf"\begin{{longtable}}{{{align}}}", title + r"\\"]
        lines += [*head, r"\endfirsthead", *head, r"\endhead"]
        lines += [*body, r"\end{longtable}", *notes, "}"]
    else:
        wide = len(table.columns) > WIDE
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
        lines.extend(" & ".join(map(_cell, row)) + r" \\" for row in section.rows)
    return lines


def _cell(cell: TableCell) -> str:
    text = _MARKS[cell.mark] % escape(cell.text)
    text += rf" {{\tiny {escape(cell.note)}}}" if cell.note else ""
    if cell.lines:
        below = "".join(rf"\\{{\tiny {escape(line.text)}}}" for line in cell.lines)
        return rf"\shortstack[{'r' if cell.numbers else 'l'}]{{{text}{below}}}"
    # A row break before a cell would read its bracket as an optional argument.
    return "{}" + text if text.startswith("[") else text
