"""What is run again, and what is not: Snakemake follows the specifications and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time

from workplace import Workplace, jobs, small_study


def test_a_second_run_has_nothing_to_do(workplace: Workplace):
    before = workplace.results()
    done = workplace.snakemake("small")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout + done.stderr
    assert workplace.results() == before and len(before) == 4


def test_one_hyperparameter_reruns_exactly_its_runs_and_keeps_the_old_results(workplace: Workplace):
    before = workplace.results()
    workplace.write(small_study("small", ["smooth_ap", "smooth_ap_wide"], tau=0.2))
    planned = jobs(workplace.dry_run("small"))
    assert (planned["spec"], planned["train"]) == (2, 2)
    assert workplace.results() == before, "a dry run changes nothing"

    done = workplace.snakemake("small")
    assert done.returncode == 0, done.stderr
    after = workplace.results()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {name for name in before if "/smooth_ap_wide/" in name} and len(changed) == 2
    for name in changed:
        (kept,) = (workplace.runs / name / "previous").iterdir()
        assert (kept / "result.json").read_bytes() == before[name][1]
        assert json.loads((kept / "spec.json").read_text())["loss"]["params"]["tau"] == 0.1
    assert "Nothing to be done" in workplace.dry_run("small").stdout


def test_equal_specifications_written_again_rerun_nothing(workplace: Workplace):
    time.sleep(0.01)
    for path in workplace.runs.glob("*/*/*/*/*/spec.json"):
        path.write_bytes(path.read_bytes())
    assert "Nothing to be done" in workplace.dry_run("small").stdout


def test_another_study_shares_runs_and_trains_only_its_own(workplace: Workplace):
    before = workplace.results()
    workplace.write(small_study("other", ["smooth_ap", "roadmap"]))
    assert jobs(workplace.dry_run("other"))["train"] == 2
    assert workplace.snakemake("other").returncode == 0
    after = workplace.results()
    assert {name: after[name] for name in before} == before
    assert {name.split("/")[2] for name in set(after) - set(before)} == {"roadmap"}
    assert "Nothing to be done" in workplace.dry_run("small").stdout


def test_an_added_loss_trains_only_that_loss(workplace: Workplace):
    workplace.write(small_study("small", ["smooth_ap", "smooth_ap_wide", "roadmap"]))
    planned = jobs(workplace.dry_run("small"))
    assert (planned["train"], planned["collect"]) == (2, 1)


def test_added_seeds_train_alone_and_the_runs_of_the_look_before_stay(workplace: Workplace):
    study = small_study("looked", ["smooth_ap", "roadmap"])
    workplace.write({**study, "seeds": [0, 1, 2, 3], "looks": [2, 4]})
    assert workplace.snakemake("looked").returncode == 0
    first = workplace.results()
    asked = [sys.executable, "-m", "benchmark", "add-seeds", "looked.yaml"]
    done = subprocess.run(
        asked, cwd=workplace.folder, env=workplace.variables, capture_output=True, text=True
    )
    assert done.returncode == 0 and "4 runs to do" in done.stdout, done.stderr
    assert jobs(workplace.dry_run("looked"))["train"] == 4
    assert workplace.snakemake("looked").returncode == 0
    after = workplace.results()
    assert {name: after[name] for name in first} == first
    assert sorted(name.split("/")[-1] for name in set(after) - set(first)) == [
        *["seed2"] * 2,
        *["seed3"] * 2,
    ]
    assert "Nothing to be done" in workplace.dry_run("looked").stdout


def test_a_changed_title_rebuilds_the_tables_and_trains_nothing(workplace: Workplace):
    workplace.write(
        {**small_study("small", ["smooth_ap", "smooth_ap_wide"]), "title": "Another title"}
    )
    planned = jobs(workplace.dry_run("small"))
    assert planned.get("collect") == 1 and "train" not in planned and "spec" not in planned


def test_contents_decide_what_is_trained_again_where_snakemake_has_forgotten_everything(
    workplace: Workplace,
):
    before = workplace.results()
    shutil.rmtree(workplace.folder / ".snakemake")
    assert "Nothing to be done" in workplace.dry_run("small").stdout

    workplace.write(small_study("small", ["smooth_ap", "smooth_ap_wide"], tau=0.2))
    changed = {name for name in before if "/smooth_ap_wide/" in name}
    edited, torn = sorted(set(before) - changed)
    specification = workplace.runs / edited / "spec.json"
    asked = specification.read_bytes()
    specification.write_bytes(asked.replace(b'"tau": 0.01', b'"tau": 0.9'))
    assert specification.read_bytes() != asked
    (workplace.runs / torn / "result.json").write_bytes(before[torn][1][:100])

    done = workplace.snakemake("small")
    assert done.returncode == 0, done.stderr
    assert (jobs(done)["spec"], jobs(done)["train"]) == (4, 4)
    assert specification.read_bytes() == asked
    after = workplace.results()
    assert all(after[name][1] == before[name][1] for name in (edited, torn))
    for name in changed:
        assert after[name][1] != before[name][1]
        (kept,) = (workplace.runs / name / "previous").iterdir()
        assert (kept / "result.json").read_bytes() == before[name][1]
    assert "Nothing to be done" in workplace.dry_run("small").stdout
