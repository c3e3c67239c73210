"""Names in tables that steps write stay texts, whatever they look like."""

from __future__ import annotations

import pandas as pd

from benchmark.core.files import guess_csv

NAMES = {"dataset": "2011", "setting": "1e5", "loss": "NA", "row_label": "", "claim": "null"}


def test_names_are_no_numbers_and_none_is_missing(tmp_path):
    path = tmp_path / "table.csv"
    written = pd.DataFrame([{**NAMES, "split": name, "n": 3} for name in ("1", "nan")])
    written.to_csv(path, index=False)
    assert guess_csv(path).to_dict("records") == written.to_dict("records")


def test_numbers_are_guessed_and_empty_fields_are_missing(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("dataset,split,n,p,lost,ok\na,,1,,,True\nb,test,2,0.5,x,False\n")
    read = guess_csv(path)
    assert read["n"].tolist() == [1, 2] and read["ok"].tolist() == [True, False]
    assert read["p"].isna().tolist() == read["split"].isna().tolist() == [True, False]
    assert pd.isna(read["lost"][0])
