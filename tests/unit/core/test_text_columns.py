"""Names in tables that steps write stay texts, whatever they look like."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmark.core.csv_file import guess_csv, read_csv

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


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_table_of_nothing_is_empty(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(pd.errors.EmptyDataError):
        guess_csv(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("best_sd", -1),
        ("ours_mean", True),
        ("ours_mean", "half"),
        ("ours_mean", 101),
        ("mean", 1.5),
        ("p_holm", -0.1),
        ("ours_n", -5),
        ("n", "inf"),
        ("peak_gpu_mb", -1),
        ("loss_ms", 1e300),
    ],
)
def test_a_number_that_cannot_be_is_named_by_its_column(tmp_path, column, value):
    path = tmp_path / "table.csv"
    pd.DataFrame({"loss": ["a"], column: [value]}).to_csv(path, index=False)
    with pytest.raises(ValueError, match=rf"a value of column {column} is not in \[0, "):
        guess_csv(path)


def test_lines_longer_than_the_header_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("loss,n\na,1,7\nb,2,8\n")
    with pytest.raises(ValueError, match="more fields than the header"):
        guess_csv(path)


@pytest.mark.parametrize("text", ["loss,n,p\na,1,0.5\nb,2", "loss,n,p\na,1,0.54", "loss,n"])
def test_a_table_that_was_cut_is_refused(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="the file was cut"):
        guess_csv(path)


@pytest.mark.parametrize("value", ["inf", "1e30"])
@pytest.mark.filterwarnings("error")
def test_a_whole_number_that_cannot_be_is_refused_without_a_warning(tmp_path, value):
    path = tmp_path / "table.csv"
    path.write_text(f"loss,n\na,{value}\n")
    with pytest.raises(ValueError, match="cannot safely convert"):
        read_csv(path, ["n"], {"n": "int64"})


def test_a_header_of_very_many_columns_is_refused_at_once(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",".join(["x"] * 100_000) + "\n")
    with pytest.raises(ValueError, match="its header has more than 100,000 bytes"):
        guess_csv(path)
