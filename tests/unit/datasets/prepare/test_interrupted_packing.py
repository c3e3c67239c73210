"""What an interrupted packing left, edited or damaged: nothing is taken over that does not fit."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from benchmark.core.errors import DataError
from benchmark.datasets.prepare import pack as packing
from benchmark.datasets.prepare.pack import Encoder, pack

SIDE = 8
PATHS = [f"{number}.png" for number in (3, 1, 4, 0, 5, 2)]


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """Return a root and its ``.packing-8``: two shards of two images, and a third not begun."""
    for path in PATHS:
        pixels = np.random.default_rng(int(path[0])).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / path)
    monkeypatch.setattr(packing, "SHARD_BYTES", (tmp_path / PATHS[0]).stat().st_size + 1)
    last = (tmp_path / PATHS[-1]).read_bytes()
    (tmp_path / PATHS[-1]).write_bytes(b"no image")
    with pytest.raises(DataError, match="1 of 6 images are broken"):
        pack(tmp_path, SIDE, PATHS, workers=1)
    (tmp_path / PATHS[-1]).write_bytes(last)
    work = tmp_path / f".packing-{SIDE}"
    assert len(list(work.glob("*.csv"))) == 2
    return tmp_path, work


@pytest.fixture
def encoded(monkeypatch):
    """Return the list of the images that are encoded from now on."""
    paths = []
    call = Encoder.__call__
    monkeypatch.setattr(
        Encoder, "__call__", lambda self, path: paths.append(path) or call(self, path)
    )
    return paths


def assert_right(root, folder):
    """Each image has its own bytes, and nothing else lies in the copy."""
    index = pd.read_csv(folder / "index.csv")
    assert index["path"].tolist() == PATHS
    for row in index.itertuples():
        shard = (folder / f"shard-{row.shard:05d}.bin").read_bytes()
        content = shard[row.offset : row.offset + row.size]
        assert content == (root / row.path).read_bytes()
    shards = {f"shard-{number:05d}.bin" for number in index["shard"]}
    assert {path.name for path in folder.iterdir()} == shards | {"index.csv", "complete.json"}


def test_shards_that_fit_are_not_written_again(interrupted, encoded):
    root, _ = interrupted
    assert_right(root, pack(root, SIDE, PATHS, workers=1))
    assert encoded == PATHS[4:]


EDITS = {
    "paths in another order": lambda rows: rows.assign(path=rows["path"].tolist()[::-1]),
    "the first row alone": lambda rows: rows[:1],
    "no rows": lambda rows: rows[:0],
    "a row more": lambda rows: pd.concat([rows, rows[:1].assign(path=PATHS[4])]),
    "a row that comes twice": lambda rows: pd.concat([rows, rows]),
    "a path that leaves": lambda rows: rows.assign(path=["../x", "../y"]),
    "another shard": lambda rows: rows.assign(shard=7),
    "the offset of another": lambda rows: rows.assign(offset=[0, 0]),
    "a negative offset": lambda rows: rows.assign(offset=[-1, 0]),
    "no sizes": lambda rows: rows.assign(size=0),
    "huge sizes": lambda rows: rows.assign(size=10**18),
    "sizes that wrap": lambda rows: rows.assign(size=[-(2**63), 2**63 - 1]),
    "offsets that are no numbers": lambda rows: rows.assign(offset="x"),
    "a column too few": lambda rows: rows.drop(columns="size"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_list_that_does_not_fit_its_shard_is_not_believed(interrupted, encoded, edit):
    root, work = interrupted
    path = work / "shard-00001.csv"
    path.write_text(EDITS[edit](pd.read_csv(path)).to_csv(index=False))
    assert_right(root, pack(root, SIDE, PATHS, workers=1))
    assert encoded == PATHS[2:], "the first shard fits"


@pytest.mark.parametrize("content", [None, b"", b"cut", b"x" * 10_000])
def test_a_shard_of_another_size_is_written_again(interrupted, encoded, content):
    root, work = interrupted
    shard = work / "shard-00001.bin"
    if content is None:
        shard.unlink()
    else:
        shard.write_bytes(content)
    assert_right(root, pack(root, SIDE, PATHS, workers=1))
    assert encoded == PATHS[2:]


def test_further_lists_than_there_are_images_are_not_believed(interrupted):
    root, work = interrupted
    for number in range(2, 50):
        rows = pd.read_csv(work / "shard-00001.csv")
        rows["shard"] = number
        rows.to_csv(work / f"shard-{number:05d}.csv", index=False)
    assert_right(root, pack(root, SIDE, PATHS, workers=1))


def test_a_shard_that_is_begun_again_loses_its_list_first(interrupted, monkeypatch):
    root, work = interrupted
    (work / "shard-00001.bin").write_bytes(b"cut")
    monkeypatch.setattr(Encoder, "__call__", lambda *_: (_ for _ in ()).throw(OSError(28, "x")))
    with pytest.raises(OSError):
        pack(root, SIDE, PATHS, workers=1)
    assert not (work / "shard-00001.csv").exists()


def test_a_shard_that_is_a_hard_link_is_not_written_through(interrupted, tmp_path):
    root, work = interrupted
    theirs = tmp_path / "theirs.bin"
    (work / "shard-00001.bin").rename(theirs)
    before = theirs.read_bytes()
    (work / "shard-00001.bin").hardlink_to(theirs)
    (work / "shard-00001.csv").unlink()
    Image.open(io.BytesIO((root / PATHS[2]).read_bytes())).rotate(90).save(root / PATHS[2])
    assert_right(root, pack(root, SIDE, PATHS, workers=1))
    assert theirs.read_bytes() == before
