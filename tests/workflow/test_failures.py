"""What goes wrong is said once, harms nothing else, and can be continued."""

from __future__ import annotations

from workplace import Workplace, small_study

BROKEN = "/smooth_ap_wide/bs32/seed1"


def test_a_failed_run_leaves_the_others_and_the_report_names_it(fresh: Workplace):
    fresh.write(small_study("small", ["smooth_ap", "smooth_ap_wide"]))
    # the import has tests of its own, and no run takes long enough for a fork server
    aside = {"QUICK_STEPS": "track", "BENCHMARK_FORK_SERVER": "off"}
    fresh.environment |= {"QUICK_TRAINING_FAILS": BROKEN, **aside}
    done = fresh.snakemake("small", target="all", hooks=True)
    assert done.returncode != 0
    finished = fresh.results()
    assert len(finished) == 3 and not any(BROKEN in name for name in finished)
    table = (fresh.folder / "results" / "small" / "runs.csv").read_text()
    assert "the training broke on purpose" in table
    page = (fresh.folder / "results" / "small" / "report" / "index.html").read_text()
    assert BROKEN.lstrip("/") in page and "the training broke on purpose" in page

    fresh.environment.clear()
    done = fresh.snakemake("small")
    assert done.returncode == 0, done.stderr
    after = fresh.results()
    assert len(after) == 4
    assert {name: after[name] for name in finished} == finished, (
        "finished runs are not trained again"
    )
    assert "broke on purpose" not in (fresh.folder / "results" / "small" / "runs.csv").read_text()


def test_a_bad_study_is_one_message_and_starts_nothing(fresh: Workplace):
    study = small_study("small", ["smooth_ap"])
    study["blocks"][0]["losses"] = ["smoth_ap"]
    study["blocks"][0]["batch_sizes"] = [30]
    fresh.write(study)
    done = fresh.snakemake("small")
    assert done.returncode == 2
    assert done.stderr.count("did you mean 'smooth_ap'?") == 1 and "3 problems" in done.stderr
    assert "Traceback" not in done.stderr
    assert not fresh.runs.exists()


def test_a_misspelt_setting_of_the_workflow_is_named(fresh: Workplace):
    fresh.write(small_study("small", ["smooth_ap"]))
    done = fresh.snakemake("small", "--config", "study=small.yaml", "reslts=elsewhere")
    assert done.returncode == 2 and "unknown setting reslts; allowed: study, results" in done.stderr


def test_no_shell_reads_the_names_of_folders(tmp_path):
    odd = 'a b\'c $(touch owned) `touch owned` "d" ü; touch owned'
    place = Workplace(tmp_path / odd)
    place.folder.mkdir()
    place.write(small_study("small", ["smooth_ap"]) | {"seeds": [0]})
    settings = ["study=small.yaml", f"results=./{odd}"]
    done = place.snakemake("small", "--config", *settings, target="runs")
    assert done.returncode == 0, done.stderr
    assert len(list((place.folder / odd).glob("runs/*/*/*/*/*/result.json"))) == 1
    assert not list(tmp_path.rglob("owned"))
