"""What is run again, and what is not: Snakemake follows the specifications and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner
from workplace import Workplace, jobs, small_study

from benchmark.__main__ import app

LOSSES = ["smooth_ap", "smooth_ap_wide"]


def kept(work: Workplace, name: str) -> Path:
    """Return the folder of the only result before that of a run."""
    (found,) = (work.runs / name / "previous").iterdir()
    return found


def test_another_study_shares_runs_and_trains_only_what_is_new_or_changed(workplace: Workplace):
    before = workplace.results()
    assert "Nothing to be done" in workplace.dry_run("small").stdout
    assert len(before) == 4
    workplace.write(small_study("other", [*LOSSES, "roadmap"], tau=0.2))
    planned = jobs(workplace.dry_run("other"))
    assert planned["spec"] == 4
    assert planned["train"] == 4
    assert workplace.results() == before, "a dry run changes nothing"

    done = workplace.snakemake("other")
    assert done.returncode == 0, done.stderr
    after = workplace.results()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {name for name in before if "/smooth_ap_wide/" in name}
    assert len(changed) == 2
    assert {name.split("/")[2] for name in set(after) - set(before)} == {"roadmap"}
    for name in changed:
        folder = kept(workplace, name)
        assert (folder / "result.json").read_bytes() == before[name][1]
        assert json.loads((folder / "spec.json").read_text())["loss"]["params"]["tau"] == 0.1
    assert "Nothing to be done" in workplace.dry_run("other").stdout


def test_an_added_loss_or_title_trains_nothing_else_and_equal_specifications_nothing(
    workplace: Workplace,
):
    time.sleep(0.01)
    for path in workplace.runs.glob("*/*/*/*/*/spec.json"):
        path.write_bytes(path.read_bytes())
    assert "Nothing to be done" in workplace.dry_run("small").stdout
    workplace.write(small_study("small", LOSSES) | {"title": "Another title"})
    planned = jobs(workplace.dry_run("small"))
    assert planned["collect"] == 1
    assert "train" not in planned
    assert "spec" not in planned
    workplace.write(small_study("small", [*LOSSES, "roadmap"]))
    planned = jobs(workplace.dry_run("small"))
    assert planned["train"] == 2
    assert planned["collect"] == 1


def test_added_seeds_train_alone(workplace: Workplace, monkeypatch):
    study = small_study("small", LOSSES)
    workplace.write({**study, "seeds": [0, 1, 2, 3], "looks": [2, 4]})
    monkeypatch.chdir(workplace.folder)
    done = CliRunner().invoke(app, ["add-seeds", "small.yaml"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "4 runs" in done.output
    planned = workplace.dry_run("small")
    assert jobs(planned)["train"] == 4
    made = re.findall(r"output: \S*/(\w+)/result\.json", planned.stdout)
    assert sorted(made) == ["seed2"] * 2 + ["seed3"] * 2


@pytest.mark.long
def test_contents_decide_what_is_trained_again_where_snakemake_has_forgotten_everything(
    workplace: Workplace,
):
    before = workplace.results()
    shutil.rmtree(workplace.folder / ".snakemake")
    assert "Nothing to be done" in workplace.dry_run("small").stdout

    workplace.write(small_study("small", LOSSES, tau=0.2))
    changed = {name for name in before if "/smooth_ap_wide/" in name}
    edited, torn = sorted(set(before) - changed)
    specification = workplace.runs / edited / "spec.json"
    asked = specification.read_bytes()
    specification.write_bytes(asked.replace(b'"tau": 0.01', b'"tau": 0.9'))
    assert specification.read_bytes() != asked
    (workplace.runs / torn / "result.json").write_bytes(before[torn][1][:100])

    done = workplace.snakemake("small")
    assert done.returncode == 0, done.stderr
    made = jobs(done)
    assert made["spec"] == 3
    assert made["train"] == 3
    assert specification.read_bytes() == asked
    after = workplace.results()
    assert after[edited] == before[edited], "the result is of the study's specification"
    assert after[torn][1] == before[torn][1]
    for name in changed:
        assert after[name][1] != before[name][1]
        assert (kept(workplace, name) / "result.json").read_bytes() == before[name][1]
    assert "Nothing to be done" in workplace.dry_run("small").stdout
