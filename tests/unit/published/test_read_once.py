"""Nothing downstream of spec.json reads the YAML of a study or of a recipe a second time."""

from __future__ import annotations

from collections import Counter

from benchmark.core import documents
from benchmark.published.fidelity import study_ledger
from benchmark.report.build import build
from benchmark.report.gallery import PairChoice
from benchmark.runs.collecting import collect
from benchmark.study import load_study
from benchmark.verdicts.matching import StudyGrid


def test_a_build_parses_a_study_and_its_recipes_once(tmp_path, monkeypatch):
    texts = []
    parse = documents.parse_yaml

    def counted(text):
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(documents, "parse_yaml", counted)
    study = load_study("fast_ap_table1", tmp_path)
    assert f"study: {study.name}" in texts[0]
    collect(study, tmp_path)
    build(study, tmp_path, PairChoice())
    assert study_ledger(study)
    assert StudyGrid.of(study).candidates
    assert {text[:80]: count for text, count in Counter(texts).items() if count > 1} == {}
