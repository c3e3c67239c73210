from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from made_up_records import made_up_provenance, made_up_result
from made_up_results import long_table, run_table
from tiny_runs import tiny_spec
from typer.testing import CliRunner

from benchmark.core.errors import ConfigError
from benchmark.core.files import write_csv
from benchmark.core.records import PROVENANCE, RESULT, SPEC, Setting
from benchmark.core.results import BatchStream, Metrics, Numerics
from benchmark.stats.compare import compare_text
from benchmark.stats.study_tables import analyse
from benchmark.study.model import Comparison

SCORES = {"smooth_ap": (0.50, 0.54, 0.49), "sup_ap": (0.52, 0.55, 0.53)}


def made(results, loss: str, seed: int, kernels: str = "portable AVX2", **changes) -> str:
    """Write one finished run and return its name; ``changes`` replace fields of its result."""
    name = f"glyphs_1k/r10/{loss}/bs32/seed{seed}"
    tiny = tiny_spec(loss, seed=seed)
    dataset = dataclasses.replace(tiny.dataset, label="glyphs_1k")
    spec = dataclasses.replace(tiny, dataset=dataset, setting=Setting("r10"))
    spec.write(results / "runs" / name / SPEC)
    folder = results / "runs" / name
    numerics = Numerics("cpu", "float32", 1, kernels, True)
    facts = {
        "code_version": "1",
        "metrics": Metrics({"test": {"map_at_r": SCORES[loss][seed]}}, {}),
        "batch_stream": BatchStream(20, f"{seed:064d}"),
    }
    made_up_result(spec, **{**facts, **changes}).write(folder / RESULT)
    made_up_provenance(spec, numerics=numerics).write(folder / PROVENANCE)
    return name


def cells_of(text: str) -> list[list[str]]:
    return [re.split(r"  +", line) for line in text.splitlines()]


@pytest.fixture
def cells(tmp_path):
    for loss in SCORES:
        for seed in range(3):
            made(tmp_path, loss, seed)
    return tmp_path


def test_cells_are_compared_by_specification_scores_and_paired_seeds(cells):
    text = compare_text("glyphs_1k/r10/smooth_ap/bs32", "glyphs_1k/r10/sup_ap/bs32", cells)
    assert ["loss", "smooth_ap", "sup_ap"] in cells_of(text)
    assert "batch_size" not in text
    gaps = 100 * (np.array(SCORES["sup_ap"]) - np.array(SCORES["smooth_ap"]))
    assert f"{gaps.mean():+.2f} [" in text
    assert "plain t-test p = " in text
    assert "n 3" in text
    assert ["same first batches", "in 3 of 3 common seeds"] in cells_of(text)
    assert "code version" not in text
    assert "platform" not in text


def test_single_runs_are_compared_without_a_test(cells):
    text = compare_text(
        "glyphs_1k/r10/smooth_ap/bs32/seed0", "glyphs_1k/r10/sup_ap/bs32/seed0", cells
    )
    assert ["mAP@R", "50.00", "52.00", "+2.00 (one pair, no test)"] in cells_of(text)
    other = compare_text(
        "glyphs_1k/r10/smooth_ap/bs32/seed0", "glyphs_1k/r10/sup_ap/bs32/seed1", cells
    )
    assert "no common seed" in other


def test_different_versions_and_diverged_runs_are_named(cells):
    made(cells, "sup_ap", 1, code_version="2", status="diverged", metrics=Metrics({}, {}))
    text = compare_text("glyphs_1k/r10/smooth_ap/bs32", "glyphs_1k/r10/sup_ap/bs32", cells)
    assert ["code version", "1", "1, 2"] in cells_of(text)
    assert "n 2" in text
    assert any(row[:2] == ["seed 1", "absent"] and "diverged" in row[2] for row in cells_of(text))


def test_results_that_collecting_leaves_out_are_named_and_left_out(cells):
    made(cells, "sup_ap", 1, spec_digest="0123456789abcdef")
    made(cells, "sup_ap", 2, spec_digest="f" * 16)
    text = compare_text("glyphs_1k/r10/smooth_ap/bs32", "glyphs_1k/r10/sup_ap/bs32", cells)
    assert ["seeds finished", "0, 1, 2", "0"] in cells_of(text)
    assert "one pair" in text
    assert "stale: the result is of specification 0123456789abcdef" in text
    assert text.count("stale: ") == 2
    assert "in 1 of 1 common seeds" in text


def test_other_kernels_are_named(cells):
    for loss, used in (("smooth_ap", "native AVX512"), ("sup_ap", "native AVX2")):
        made(cells, loss, 0, kernels=used)
    text = compare_text(
        "glyphs_1k/r10/smooth_ap/bs32/seed0", "glyphs_1k/r10/sup_ap/bs32/seed0", cells
    )
    assert ["kernels", "native AVX512", "native AVX2"] in cells_of(text)


def test_unknown_runs_are_met_with_near_names_both_at_once(cells):
    with pytest.raises(ConfigError) as found:
        compare_text("glyphs_1k/r10/smoth_ap/bs32", "glyphs/r10/sup_ap/bs32/seed7", cells)
    assert len(found.value.problems) == 2
    assert "glyphs_1k/r10/smooth_ap/bs32" in str(found.value.problems[0])
    with pytest.raises(ConfigError, match="nothing has been run there"):
        compare_text("a", "b", cells / "elsewhere")


def test_compare_verb_takes_paths_as_completed_by_a_shell(cells):
    from benchmark.__main__ import app

    names = [f"{cells}/runs/glyphs_1k/r10/{loss}/bs32/" for loss in SCORES]
    words = ["--study", "smoke", "--results", str(cells)]
    done = CliRunner().invoke(app, ["compare", *names, *words])
    assert done.exit_code == 0
    assert ["seeds finished", "0, 1, 2", "0, 1, 2"] in cells_of(done.output)


def test_two_cells_have_the_p_and_interval_of_the_study_with_most_losses(cells):
    names = [f"glyphs_1k/r10/{loss}/bs32" for loss in SCORES]
    made_up = {**SCORES, "fast_ap": (0.5, 0.6, 0.5), "roadmap": (0.5, 0.51, 0.53)}
    for study, losses, alpha in (("few", 3, 0.05), ("looks", 4, 0.02), ("other", 4, 0.05)):
        runs = long_table(dict.fromkeys([*made_up][:losses], 0.5), seeds=3, setting="r10")
        scores = [made_up[run.loss][run.seed] for run in runs.itertuples()]
        runs = runs.assign(dataset="glyphs_1k" if study != "other" else "sop", value=scores)
        found = analyse(run_table(runs), Comparison("smooth_ap", (), alpha), ["map_at_r"])
        write_csv(cells / study / "stats" / "paired.csv", found["paired"])
        row = found["paired"].query("loss == 'sup_ap' and against == 'smooth_ap'").iloc[0]
        low, high, difference = (100 * row[at] for at in ("ci_low", "ci_high", "difference"))
        p = f"p = {row['p']:.3g} of study '{study}', plain t-test p = {row['p_plain']:.3g}, n 3"
        expected = f"{difference:+.2f} [{low:+.2f}, {high:+.2f}], {p}"
        text = compare_text(*names, cells, study)
        assert (expected in text) == (study != "other")
        assert "plain t-test p = " in text
        if study == "looks":
            assert row["p"] != row["p_plain"]
            assert compare_text(*names, cells) == text
            turned = f"{-difference:+.2f} [{-high:+.2f}, {-low:+.2f}], {p}"
            assert turned in compare_text(*reversed(names), cells)
    made(cells, "sup_ap", 2, metrics=Metrics({"test": {"map_at_r": 0.6}}, {}))
    assert "of study" not in compare_text(*names, cells)  # the tables are of another run
