"""The evidence of the smallest study is made, equals its digests, and shows what differs."""

from __future__ import annotations

import evidence
from tiny_runs import in_a_fork


def test_the_smallest_study_gives_the_files_of_the_digests(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "files"
    words = ["released", "--files", str(folder)]
    assert in_a_fork(evidence.main, words) == 0
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(folder)): path.read_text("utf-8") for path in paths}
    assert "released/scores.csv" in files

    monkeypatch.setattr(evidence, "made", lambda studies, covered: dict(files))
    changed = folder / "released" / "stats" / "summary.csv"
    changed.write_text(changed.read_text().replace("roxford5k_hard", "roxford5k_easy", 1))
    assert evidence.main(words) == 1
    shown = capsys.readouterr().out
    assert "released/stats/summary.csv differs" in shown
    assert "roxford5k_easy" in shown
    assert "\n1 of " in shown
