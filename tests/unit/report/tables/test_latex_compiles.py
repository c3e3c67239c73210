"""The LaTeX of every table, of a study and of a paper, compiles without an error."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from made_up_inputs import WENT_WRONG, drawn, made_up_inputs, paper_inputs, roadmap_study

from benchmark.report.build import parts
from benchmark.report.render import to_latex
from benchmark.report.table import Column, Section, Table, TableCell, text_column

ENGINE = next((path for name in ("pdflatex", "tectonic") if (path := shutil.which(name))), None)
HEAD = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,longtable,graphicx}
\begin{document}
"""
ODD = Table(
    "Odd: 50% of {a} & b_c #1 ~ ^ \\ $",
    "Greek τ ρ λ, signs ± − × · → ≥ ≤, “quoted”, 1 < 2 > 0, d_z…",
    [
        text_column("A [b]"),
        Column(("x", "y"), parts=("value",)),
        Column(("x", "z"), parts=("value",)),
    ],
    [
        Section(
            "[first] & more",
            [
                [
                    TableCell("[ci, 1]"),
                    TableCell("1", mark="best", note="n=1_2"),
                    TableCell("–", mark="second"),
                ]
            ],
        )
    ],
    ["A note with 100% of &."],
)


def compiled(body: str, folder) -> str:
    """Returns what the engine printed; asserts that it ended well."""
    (folder / "page.tex").write_text(f"{HEAD}{body}\n\\end{{document}}\n", encoding="utf-8")
    options = ["-interaction=nonstopmode", "-halt-on-error"] if ENGINE.endswith("pdflatex") else []
    done = subprocess.run(
        [ENGINE, *options, "page.tex"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert (folder / "page.pdf").stat().st_size > 1000
    return done.stdout


@pytest.mark.skipif(ENGINE is None, reason="no LaTeX engine (pdflatex, tectonic) on the path")
def test_every_table_compiles(tmp_path):
    study = made_up_inputs(bad=WENT_WRONG, references=True)
    paper = paper_inputs(roadmap_study(seeds=(0, 1), sizes=(32, 64)), epochs=2)
    tables = {
        f"{kind}_{name}": table
        for kind, inputs in (("study", study), ("paper", paper))
        for name, table in drawn(parts("table", inputs)).items()
        if isinstance(table, Table)
    }
    assert len(tables) > 15
    parts = [
        to_latex(table, name) + r"\clearpage" for name, table in {**tables, "odd": ODD}.items()
    ]
    assert "Missing character" not in compiled("\n".join(parts), tmp_path)
