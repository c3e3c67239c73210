"""Rows of a paper's numbers name methods, metrics and versions that exist."""

from __future__ import annotations

from paper_folders import FILES, METHODS, changed, load_paper, problems, write_paper


def test_a_method_stands_for_a_loss_of_the_suite_or_says_why_no_study_has_it(tmp_path):
    about = changed("paper.yaml", "A toy\n", "A toy\nmethods: {toy: {loss: sup_app}}\n")
    text = problems(tmp_path / "wrong", paper=about)
    assert "line 2, column method: unknown loss 'sup_app'; did you mean 'sup_ap'?" in text
    assert "line 3" not in text, "sop is outside"
    everything = "outside:\n  - rows: {table: table1}\n    reason: nobody has the code\n"
    rest = dict.fromkeys(("claims", "figures", "implied"))
    load_paper(write_paper(tmp_path / "said", outside=everything, paper=about, **rest))
    copied = changed("results.csv", "smoothap,copied", "of_another_paper,copied")
    load_paper(write_paper(tmp_path / "copied", results=copied))


def test_a_row_of_no_version_of_the_paper_is_refused(tmp_path):
    rows = FILES["results.csv"].splitlines()
    versioned = ["version," + rows[0], "v1," + rows[1], "v9," + rows[1]]
    about = FILES["paper.yaml"] + METHODS + "versions: {v1: Toy}\n"
    rest = {"implied": None, "outside": None, "footnotes": None}
    text = problems(tmp_path, paper=about, results="\n".join(versioned) + "\n", **rest)
    assert "line 3, column version: unknown version 'v9'" in text
