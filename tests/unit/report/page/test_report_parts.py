"""Parts of the page beside tables and figures: analyses, recipes, claims."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pandas as pd
from made_up_inputs import made_up_inputs, written_page
from made_up_results import made_up_runs, made_up_study

from benchmark.report.answer import answer
from benchmark.report.page import load_analysis, recipe_tables
from benchmark.report.tally import counts

STUDY = made_up_study(
    losses=("smooth_ap", "sup_ap"),
    batch_sizes=(32,),
    seeds=(0, 1),
    tables=("comparison",),
    figures=(),
)
SUMMARY = {
    "schema": 1,
    "name": "toy",
    "title": "A toy <ranking>",
    "places": ["ROADMAP Fig. 1"],
    "caption": "What is drawn.",
    "alt": "A plot of 'a' & b",
    "table_caption": "",
    "table_notes": [],
    "sentences": ["Found. This agrees with the paper.", "A further finding."],
    "claims": [
        {
            "name": "c",
            "place": "Fig. 1",
            "says": "It holds.",
            "found": "Found.",
            "verdict": "supported",
            "sentence": "Found. This agrees with the paper.",
        }
    ],
    "study": "made_up",
    "quick": False,
    "seeds": [0],
    "runs": [],
    "code_version": "1",
    "platform": "p",
}


def left_behind(results, **changes):
    """Writes the files of one analysis and returns the study's folder."""
    folder = results / "made_up" / "analyses" / "toy"
    folder.mkdir(parents=True, exist_ok=True)
    namespace = 'xmlns="http://www.w3.org/2000/svg"'
    drawing = f'<svg {namespace} viewBox="0 0 72 72" width="1in"><g id="x"/></svg>\n'
    drawing = f'<?xml version="1.0"?>\n{drawing}'
    for name, text in (("figure.svg", drawing), ("figure.csv", "a\n1\n"), ("table.csv", "b\n2\n")):
        (folder / name).write_text(text)
    (folder / "table.html").write_text('<figure class="table" id="table-analysis-toy"></figure>')
    (folder / "summary.json").write_text(json.dumps({**SUMMARY, **changes}))
    return results / "made_up"


def section(page: str, anchor: str) -> str:
    return page.split(f'<section id="{anchor}"')[1].split("</section>")[0]


def test_analyses_are_part_of_the_page_with_figure_table_claims_and_numbers(tmp_path):
    page = written_page(made_up_inputs(STUDY), left_behind(tmp_path))
    shown = section(page, "analyses")
    assert (
        'aria-label="A plot of &#x27;a&#x27; &amp; b"' in shown and 'id="analysis-toy-x"' in shown
    )
    assert "A toy &lt;ranking&gt;" in shown
    assert "After ROADMAP Fig. 1. Nothing was trained for it." in shown
    assert 'class="tone-good">supported</strong>: It holds. (Fig. 1)<br>Found.' in shown
    assert "A further finding." in shown and shown.count("This agrees") == 0, (
        "judged findings are said once"
    )
    assert 'id="table-analysis-toy"' in shown
    assert shown.count('download="toy_') == 2


def test_an_analysis_on_a_dataset_is_named_after_both(tmp_path):
    folder = left_behind(tmp_path)
    (folder / "analyses" / "toy").rename(folder / "analyses" / "toy-cub")
    assert load_analysis(folder / "analyses" / "toy-cub").name == "toy-cub"


def test_a_study_without_analyses_has_no_section_for_them(tmp_path):
    page = written_page(made_up_inputs(STUDY), tmp_path)
    assert '<section id="analyses"' not in page


def test_sources_of_the_recipes_stand_under_provenance_once_each(tmp_path):
    (block,) = STUDY.blocks
    named = dataclasses.replace(
        block,
        recipe_name="glyphs_smoke",
        sources={"sampler": "Paper <3.2>", "optimizer": "its code"},
    )
    silent = dataclasses.replace(block, recipe_name="glyphs_test_resnet")
    study = dataclasses.replace(STUDY, blocks=(named, named, silent))
    inputs = dataclasses.replace(made_up_inputs(STUDY), study=study)
    shown = section(written_page(inputs, tmp_path), "provenance")
    assert "Paper &lt;3.2&gt;" in shown
    assert shown.count(">glyphs_smoke<") == 1
    assert "No sources are given in: glyphs_test_resnet." in shown
    assert [*recipe_tables(made_up_inputs(STUDY))] == []


def provenance(tmp_path, **changes) -> str:
    """Return the words of the section on provenance, of a record with these entries."""
    made = made_up_inputs(STUDY)
    inputs = dataclasses.replace(made, provenance={**made.provenance, **changes})
    shown = section(written_page(inputs, tmp_path), "provenance")
    return " ".join(re.sub("<[^>]+>", " ", shown).split())


def test_weights_are_told_by_architecture_and_digest_with_the_settings_of_each_size(tmp_path):
    same = {"backbone": "test_resnet", "weights": "from scratch"}
    entries = [
        {**same, "initial_digest": digest, "parameters": size, "settings": [setting], "runs": runs}
        for setting, size, runs in (("r", 384816, 40), ("r~dim32", 375504, 1))
        for digest in ("07651f4a", "38107c8e")
    ]
    assert (
        "Weights: test_resnet from scratch; first weights of the backbone by digest: "
        "07651f4a (41 runs), 38107c8e (41 runs); networks of "
        "375504 parameters in r~dim32 (2 runs); 384816 parameters in r (80 runs)"
    ) in provenance(tmp_path, weights=entries)


def test_machines_are_told_with_the_kernels_in_use(tmp_path):
    (machine,) = made_up_inputs(STUDY).provenance["hardware"]
    told = provenance(
        tmp_path,
        hardware=[machine | {"kernels": used} for used in ("native AVX512", "portable AVX2")],
    )
    for used in ("native AVX512", "portable AVX2"):
        assert f"2 of 4 cores used, {used} kernels, 7.5 GB of memory, no GPU, 77 runs" in told


def test_versions_that_differ_are_counted(tmp_path):
    told = provenance(tmp_path, code_versions={"1.0+abc": 3, "0.9": 1})
    assert "0.9 (1 run); 1.0+abc (3 runs); mixed: compare numbers across them with care" in told
    told_of_plugin = provenance(tmp_path, code_versions={"1.0+abc": 3, "1.0+abc+mine-1": 1})
    assert "1.0+abc (3 runs); 1.0+abc+mine-1 (1 run) Platform" in told_of_plugin
    assert "numpy 2.3.0 (7 runs); 2.4.6 (70 runs)" in told
    assert "torch 2.13.0" in told


CLAIM = {
    "p_contradicted": np.nan,
    "paper": "fastap2019",
    "stated_in": "table 1",
    "sentence": "s",
    "condition": "c",
    "reason": "r",
    "unit": "points",
    "outside": "",
}
CLAIM.update(
    dict.fromkeys(("estimate", "ci_low", "ci_high", "p", "parts_run", "parts_holding", "parts"))
)


def claims(*verdicts: tuple[str, str]) -> pd.DataFrame:
    rows = [
        {
            "claim": str(number),
            "reading": reading,
            "verdict": verdict,
            "p_contradicted": np.nan,
            **CLAIM,
        }
        for number, pair in enumerate(verdicts)
        for reading, verdict in zip(("published", "here"), pair, strict=True)
    ]
    return pd.DataFrame(rows)


def with_claims(*verdicts):
    made = made_up_inputs(STUDY)
    return dataclasses.replace(made, claims=claims(*verdicts))


def test_claims_count_as_found_here_where_none_could_be_tested_as_published():
    inputs = with_claims(
        ("not_run", "supported"), ("not_run", "contradicted"), ("not_run", "not_run")
    )
    heading, _, claims = counts(inputs)[-1]
    assert [count.number for count in claims] == [1, 1, 0, 1, 0]
    assert "tested on what was run here" in heading
    assert (
        answer(inputs)[-1]
        == "Of 3 claims tested on what was run here: 1 supported, 1 contradicted, 1 not run."
    )
    assert "claim" not in answer(inputs)[0], "the study asks another question first"
    unjudged = [heading for heading, *_ in counts(with_claims(("not_run", "not_asked")))]
    assert unjudged == ["Runs"], "none was judged"
    decided = with_claims(("inconclusive", "supported"), ("not_run", "contradicted"))
    heading, _, claims = counts(decided)[-1]
    assert [count.number for count in claims] == [0, 0, 1, 1, 0]
    assert "their own conditions" in heading


def test_claims_have_a_section_after_the_results_as_soon_as_one_was_judged(tmp_path):
    study = dataclasses.replace(STUDY, tables=("comparison", "paired", "claims"))
    for verdicts, judged in ((("not_run", "supported"), True), (("not_run", "not_asked"), False)):
        page = written_page(dataclasses.replace(with_claims(verdicts), study=study), tmp_path)
        order = re.findall(r'<section id="(\w+)"', page)
        assert ("claims" in order) == judged
        assert not judged or order.index("tests") < order.index("claims") < order.index("rest")
        assert judged or 'id="table-claims"' in section(page, "rest")


def test_runs_that_were_made_to_be_timed_are_no_contestants():
    runs = made_up_runs(STUDY)
    timed = runs.assign(
        setting="r10~timing", run_id=runs["run_id"].str.replace("r10", "r10~timing")
    )
    together = made_up_inputs(STUDY, runs=pd.concat([runs, timed]))
    for name in ("scores", "summary", "curves", "best_epoch", "differences"):
        assert set(getattr(together, name)["setting"]) == {"r10"}, name
    assert "r10~timing" in set(together.costs["setting"])
    other = made_up_inputs(STUDY, runs=runs.assign(setting="r10~timings"))
    assert set(other.summary["setting"]) == {"r10~timings"}


def test_a_study_at_equal_budgets_without_ranks_has_no_answer():
    some = pd.DataFrame({"trials": [0], "dataset": ["a"], "loss": ["b"]})
    budgets = {"budget_ranks": pd.DataFrame(), "budget_gaps": some}
    inputs = dataclasses.replace(made_up_inputs(STUDY), budgets=budgets)
    (sentence,) = answer(inputs)
    assert sentence.startswith("There is no answer yet: no setting was chosen by trials")
