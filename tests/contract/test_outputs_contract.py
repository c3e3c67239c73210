"""Every registered table and figure keeps the same promises, whoever adds it."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import textwrap

import pytest
from made_up_inputs import (
    WENT_WRONG,
    inputs_of_trials,
    inputs_over_datasets,
    made_up_inputs,
    written_page,
)
from made_up_results import made_up_runs, made_up_study
from tiny_runs import in_a_fork

from benchmark.core.registry import import_plugins
from benchmark.report.drawing import to_svg
from benchmark.report.figures import FIGURES
from benchmark.report.render import to_csv, to_html, to_latex, to_markdown
from benchmark.report.table import NothingToShow
from benchmark.report.tables import TABLES

# of papers whose numbers were run, and of pretrained networks
OF_SOME = ("claims", "outcomes", "outside", "pretraining")
OF_TRIALS = [
    entry.name for each in (TABLES, FIGURES) for entry in each if entry.facts.get("of_trials")
]
# What only a study over datasets has, of sources of noise, or of options that make sizes equal.
OVER_DATASETS = ("ranks", "critical_difference", "performance_profiles", "noise", "noise_sources")
OVER_DATASETS += ("whole_set",)
_SMALL = {"losses": ("smooth_ap", "sup_ap"), "batch_sizes": (32,)}


def _all_lost(status):
    study = made_up_study(**_SMALL, seeds=(0, 1))
    return made_up_inputs(
        study, bad={(loss, 32, seed): status for loss in _SMALL["losses"] for seed in (0, 1)}
    )


def _empty():
    study = made_up_study(**_SMALL)
    return made_up_inputs(study, runs=made_up_runs(study).iloc[:0])


CASES = {
    "trials": inputs_of_trials,
    "datasets": inputs_over_datasets,
    "full": lambda: made_up_inputs(bad=WENT_WRONG, references=True),
    "one seed": lambda: made_up_inputs(made_up_study(**_SMALL, seeds=(0,)), references=True),
    "all diverged": lambda: _all_lost("diverged"),
    "all missing": lambda: _all_lost("missing"),
    "empty": _empty,
}


@pytest.fixture(scope="module", params=list(CASES))
def case(request):
    return request.param, CASES[request.param]()


@pytest.mark.parametrize("name", TABLES.names())
def test_tables_render_in_every_format_or_say_what_is_missing(name, case):
    label, inputs = case
    try:
        table = TABLES[name].target(inputs)
    except NothingToShow as reason:
        assert label != "full" or name in (*OF_SOME, *OVER_DATASETS, *OF_TRIALS)
        assert len(str(reason)) > 20
        assert not str(reason).endswith(".")
        return
    assert table.rows
    assert table.caption.endswith(".")
    assert table.title
    assert len({len(row) for row in csv.reader(io.StringIO(to_csv(table)))}) == 1
    for text in (to_markdown(table), to_latex(table, name), to_html(table, name)):
        assert table.sections[0].rows[0][0].text.split()[0] in text.replace("\\", "")
        assert "nan" not in text.replace("was nan", "")


@pytest.mark.parametrize("name", FIGURES.names())
def test_figures_draw_or_say_what_is_missing(name, case):
    label, inputs = case
    try:
        drawing = FIGURES[name].target(inputs)
    except NothingToShow as reason:
        assert label != "full" or name in (*OVER_DATASETS, *OF_TRIALS)
        assert label != "trials" or name not in OF_TRIALS
        assert label != "datasets" or name not in OVER_DATASETS
        assert len(str(reason)) > 20
        assert not str(reason).endswith(".")
        return
    assert drawing.alt
    assert drawing.caption
    assert len(drawing.data)
    assert "<svg" in to_svg(drawing)


@pytest.mark.parametrize("registry", [TABLES, FIGURES], ids=["tables", "figures"])
def test_entries_live_in_their_folder_with_a_display_name_and_a_docstring(registry):
    for entry in registry:  # those of one kind may share a file
        assert entry.target.__module__.rpartition(".")[0] == registry.package
        assert entry.display != entry.name
        assert entry.target.__doc__


def test_a_new_table_is_one_file(tmp_path, monkeypatch):
    (tmp_path / "seed_count.py").write_text(
        textwrap.dedent(
            '''
            from benchmark.report.table import Section, Table, TableCell, text_column
            from benchmark.report.tables import TABLES

            @TABLES.register("seed_count", display="Number of seeds")
            def build(inputs):
                """Return one row."""
                rows = [[TableCell(str(inputs.runs["seed"].nunique()))]]
                columns = [text_column("Seeds")]
                return Table("Number of seeds", "Seeds.", columns, [Section("", rows)])
            '''
        )
    )
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    page = in_a_fork(page_with_plugins, tmp_path / "page")
    assert 'id="table-seed_count"' in page
    assert '<section id="more"' in page


def page_with_plugins(folder):
    import_plugins()
    study = made_up_study(losses=("smooth_ap",), seeds=(0,), figures=())
    return written_page(made_up_inputs(study), folder)


def test_names_are_known_without_drawing_and_nothing_imports_torch():
    code = """
        import sys
        from benchmark.report.figures import FIGURES
        from benchmark.report.tables import TABLES
        assert len(TABLES.names()) >= 8 and len(FIGURES.names()) >= 6
        assert "matplotlib" not in sys.modules
        import benchmark.report.page, benchmark.cli.report
        assert "torch" not in sys.modules and "faiss" not in sys.modules
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
