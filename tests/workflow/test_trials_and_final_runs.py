"""A study with rules runs its trials, chooses, and goes on with the final runs in one call."""

from __future__ import annotations

import json
import shutil

from workplace import REPORT_STEPS, Workplace, small_study


def test_one_call_makes_trials_and_the_final_runs_that_follow_from_them(fresh: Workplace, dry_runs):
    study = small_study("small", ["smooth_ap"])
    study |= {"seeds": [0], "rules": {"trials": [2], "folds": 2, "final_seeds": 2}}
    study["blocks"][0]["batch_sizes"] = [16]
    fresh.write(study)
    done = fresh.snakemake("small", target="runs")
    assert done.returncode == 0, done.stderr
    trials = list(fresh.runs.glob("glyphs_tiny.fold*/*/*/bs16/seed0/result.json"))
    finals = list(fresh.runs.glob("glyphs_tiny/*/*/bs16/seed[12]/result.json"))
    assert (len(trials), len(finals)) == (3 * 2, 2 * 2)

    selection = fresh.folder / "results" / "small" / "selection.json"
    choices = json.loads(selection.read_text())["choices"]
    chosen = {choice["trials"]: choice for choice in choices}
    scores = {
        trial: [
            json.loads(path.read_text())["metrics"]["last"]["test"]["recall_at_1"]
            for path in fresh.runs.glob(f"*.fold*/*~trial0{trial}/*/bs16/seed0/result.json")
        ]
        for trial in (1, 2)
    }
    best = max(scores, key=lambda trial: sum(scores[trial]))
    assert chosen[2]["trial"] == best
    assert chosen[0]["trial"] == 0
    spec = next(fresh.runs.glob("glyphs_tiny/*~equal2/smooth_ap/bs16/seed1/spec.json"))
    rate = json.loads(spec.read_text())["recipe"]["optimizer"]["lr"]
    assert rate == chosen[2]["override"]["optimizer"]["lr"]

    fresh.dry_runs = dry_runs
    assert "Nothing to be done" in fresh.dry_run("small", "runs").stdout

    # what is missing or does not fit is seen without Snakemake's memory, too
    shutil.rmtree(fresh.folder / ".snakemake")
    trials[0].unlink()
    study["rules"]["trials"] = [3]
    fresh.write(study)
    fresh.environment |= {"QUICK_STEPS": REPORT_STEPS}
    page = "results/small-selected/report/index.html"
    more = fresh.snakemake("small", target=page)
    assert more.returncode == 0 and (fresh.folder / page).is_file(), more.stderr
    assert trials[0].is_file()
    assert len(list(fresh.runs.glob("*.fold*/*~trial03/*/*/*/result.json"))) == 2
    assert len(list(fresh.runs.glob("glyphs_tiny/*~equal3/*/*/*/result.json"))) == 2
    choices = json.loads(selection.read_text())["choices"]
    assert {choice["trials"] for choice in choices} == {0, 3}
