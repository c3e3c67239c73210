"""Embeddings of strangers: mapped, without pickles, and with the size that their headers state."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from benchmark.core.errors import DataError
from benchmark.datasets.io.arrays import read_arrays

ROWS = np.arange(12, dtype=np.float16).reshape(4, 3)
LABELS = np.array([7, 7, 8, 8])


def npy(array, **changes):
    stream = io.BytesIO()
    np.save(stream, array)
    text = stream.getvalue()
    for old, new in changes.items():
        text = text.replace(old.encode(), new)
    return text


def zipped(content, kind=zipfile.ZIP_STORED, name="embeddings.npy"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def tensors(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Harmful:
    def __reduce__(self):
        return print, ("run",)


def pickled():
    stream = io.BytesIO()
    np.save(stream, np.array([Harmful()], dtype=object), allow_pickle=True)
    return stream.getvalue()


def torch_file(value):
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["npz", "packed.npz", "safetensors", "pt"])
def test_each_format_gives_its_arrays_by_name(tmp_path, kind):
    path = tmp_path / f"file.{kind}"
    content = {"embeddings": ROWS, "labels": LABELS}
    if kind == "npz":
        np.savez(path, **content)
    elif kind == "packed.npz":
        np.savez_compressed(path, **content)
    elif kind == "safetensors":
        save_file(content, path)
    else:
        torch.save({name: torch.from_numpy(each) for name, each in content.items()}, path)
    found = read_arrays(path, "alone")
    assert set(found) == set(content)
    for name, each in content.items():
        assert found[name].dtype == each.dtype
        assert np.array_equal(found[name], each)


def test_a_file_of_one_array_has_the_name_that_is_asked_for(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    torch.save(torch.from_numpy(ROWS), tmp_path / "rows.pt")
    for suffix in ("npy", "pt"):
        found = read_arrays(tmp_path / f"rows.{suffix}", "embeddings")
        assert np.array_equal(found["embeddings"], ROWS)


def test_arrays_are_mapped_and_not_loaded(tmp_path):
    np.savez(tmp_path / "rows.npz", embeddings=np.asfortranarray(ROWS))
    np.save(tmp_path / "rows.npy", ROWS)
    for suffix in ("npz", "npy"):
        found = read_arrays(tmp_path / f"rows.{suffix}", "embeddings")["embeddings"]
        assert isinstance(found, np.memmap)
        assert np.array_equal(found, ROWS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("label\n3\n-4\n", {"label": [3, -4]}),
        ("3\n4\n", {"labels": [3, 4]}),
        ("label\n#1\n#2\n", {"label": ["#1", "#2"]}),
        ('label,query,names\na,True,"x, y"\nb,False,z\n',
         {"label": ["a", "b"], "query": ["True", "False"], "names": ["x, y", "z"]}),
        ("\ufefflabel\n1.5\n007\n", {"label": ["1.5", "007"]}),
    ],
)  # fmt: skip
def test_a_table_gives_its_columns_as_numbers_or_texts(tmp_path, text, expected):
    (tmp_path / "labels.csv").write_text(text, encoding="utf-8")
    found = read_arrays(tmp_path / "labels.csv", "labels")
    assert {name: each.tolist() for name, each in found.items()} == expected


LONG = b"(9000000000000, 3), }"
WRONG = {
    "pickle.npy": pickled(),
    "pickle.npz": zipped(pickled()),
    "pickle.pt": torch_file({"embeddings": Harmful()}),
    "old.pt": pickle.dumps(Harmful()),
    "more.npz": zipped(npy(ROWS) + b"x"),
    "less.npz": zipped(npy(ROWS)[:-2]),
    "less.npy": npy(ROWS)[:-2],
    "text.npz": b"PK\3\4 no archive",
    "other.npz": zipped(b"GIF89a", name="image.gif"),
    "damaged.npz": zipped(npy(ROWS), zipfile.ZIP_DEFLATED)[:-60],
    "no_header.safetensors": struct.pack("<Q", 2**60) + b"{}",
    "beyond.safetensors": tensors(
        {"embeddings": {"dtype": "F16", "shape": [400, 3], "data_offsets": [0, 2400]}}, b"0" * 24
    ),
    "other.safetensors": tensors(
        {"embeddings": {"dtype": "F16", "shape": [4, 3], "data_offsets": [0, 22]}}, b"0" * 22
    ),
    "scalar.pt": torch_file(3),
    "ragged.csv": b"label,query\n1,True\n2\n",
    "empty.csv": b"",
    "name.gif": b"GIF89a",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_not_what_it_says_is_refused_and_runs_nothing(tmp_path, name, capsys):
    (tmp_path / name).write_bytes(WRONG[name])
    with pytest.raises(DataError, match=name.partition(".")[0]):
        read_arrays(tmp_path / name, "embeddings")
    assert capsys.readouterr().out == ""


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_unpacked(
    tmp_path, monkeypatch, messages
):
    np.savez_compressed(tmp_path / "bomb.npz", embeddings=np.zeros((1000, 100), np.float32))
    monkeypatch.setattr("benchmark.datasets.io.arrays.UNPACKED", 100_000)
    with messages.raised():
        read_arrays(tmp_path / "bomb.npz", "embeddings")


def test_a_header_may_not_ask_for_more_than_the_file_has(tmp_path):
    content = npy(ROWS).replace(b"(4, 3), }            ", LONG)
    assert LONG in content
    for name, text in (("long.npy", content), ("long.npz", zipped(content))):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(DataError, match=name):
            read_arrays(tmp_path / name, "embeddings")


def csv_of(text):
    return "label\n" + text


def zip_of_many():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number in range(30_000):
            archive.writestr(f"array{number}.npy", b"")
    return stream.getvalue()


NONE = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
LARGE = {
    "wide.csv": csv_of("a\n" * 1000 + "b" * 1001 + "\n").encode(),
    "long.csv": csv_of("b\n" * 2**24).encode(),
    "many.npz": zip_of_many(),
    "many.safetensors": tensors({f"array{number}": NONE for number in range(30_000)}),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_would_cost_much_is_refused_in_a_short_message(tmp_path, name):
    (tmp_path / name).write_bytes(LARGE[name])
    with pytest.raises(DataError, match=r"more than 1,000 letters|allowed: [\d,]+\)") as error:
        read_arrays(tmp_path / name, "labels")
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("suffix", ["npz", "npy", "pt", "csv", "safetensors"])
def test_pipes_devices_and_folders_are_refused_at_once(tmp_path, suffix):
    pipe = tmp_path / f"pipe.{suffix}"
    device = tmp_path / f"device.{suffix}"
    folder = tmp_path / f"folder.{suffix}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    folder.mkdir()
    for path in (pipe, device, folder):
        with pytest.raises(DataError, match="not a regular file"):
            read_arrays(path, "labels")


@pytest.mark.parametrize("name", WRONG)
def test_no_message_is_that_of_a_library_that_advises_to_load_unsafely(tmp_path, name, recwarn):
    (tmp_path / name).write_bytes(WRONG[name])
    with pytest.raises(DataError) as error:
        read_arrays(tmp_path / name, "embeddings")
    assert not re.search("weights_only|allow_pickle|unsafe|max_header|Error", str(error.value))
    assert len(recwarn) == 0


TENSOR = torch.from_numpy(ROWS.astype(np.float32))


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ({"embeddings": TENSOR.bfloat16()}, ["embeddings"]),
        ({"embeddings": torch.nn.Parameter(TENSOR)}, ["embeddings"]),
        ((TENSOR, torch.from_numpy(LABELS)), ["0", "1"]),
        ([TENSOR], ["0"]),
        ({"embeddings": torch.cat([TENSOR, TENSOR])[4:], "names": ["a"]}, ["embeddings", "names"]),
    ],
)  # fmt: skip
def test_tensors_are_read_as_networks_leave_them(tmp_path, content, names):
    torch.save(content, tmp_path / "rows.pt")
    found = read_arrays(tmp_path / "rows.pt", "embeddings")
    assert list(found) == names
    assert found[names[0]].dtype == np.float32
    assert np.array_equal(found[names[0]], ROWS)  # small whole numbers are exact in bfloat16


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_table_in_utf_16_is_told_its_encoding(tmp_path, encoding):
    (tmp_path / "labels.csv").write_bytes("\ufefflabel\n1\n2\n".encode(encoding))
    with pytest.raises(DataError, match=r"labels\.csv is in UTF-16; save it in UTF-8"):
        read_arrays(tmp_path / "labels.csv", "labels")


@pytest.mark.parametrize("first", ["sep=;", "SEP=,", "\ufeffsep=\t", "sep=|"])
def test_a_first_line_that_names_the_separator_is_named(tmp_path, first):
    text = f"{first}\nlabel;camera\n1;2\n"
    (tmp_path / "labels.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"line 1, .*is no heading; delete it"):
        read_arrays(tmp_path / "labels.csv", "labels")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_headers_of_numpy_may_have_any_version(tmp_path, version):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, ROWS, version=version)
    (tmp_path / "rows.npz").write_bytes(zipped(stream.getvalue()))
    assert np.array_equal(read_arrays(tmp_path / "rows.npz", "x")["embeddings"], ROWS)


@pytest.mark.parametrize(
    "text",
    [
        "label;camera,front\n1;2\n",
        "label\n1;2\n3;4\n",
        "label|camera\n1|2\n",
        "label camera\n1 2\n",
        "label,label\n1,2\n",
        "label,camera\n1,2,3\n",
        "label,camera\n\n1,2\n",
        'label\n"a\n',
    ],
)
def test_a_table_that_can_be_read_in_two_ways_is_an_error(tmp_path, text):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(DataError, match=r"labels\.csv"):
        read_arrays(tmp_path / "labels.csv", "labels")
