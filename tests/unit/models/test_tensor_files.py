"""Files of torch with keys that Python could not hash are refused before torch reads them."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict

import pytest
import torch

from benchmark.core.errors import DataError
from benchmark.core.pickles import RefusedError
from benchmark.models.tensor_file import read_tensors
from benchmark.models.weights import read_checkpoint

LEVELS = 70
# the tuple (t, t) of (t, t) of ..., from the memory of the pickle: 2^70 parts
WIDE = b")q\x00" + b"".join(bytes([0x68, i, 0x68, i, 0x86, 0x71, i + 1]) for i in range(LEVELS))
KEY = bytes([0x68, LEVELS])
HOSTILE = {
    "key": b"}" + KEY + b"K\x01s.",
    "keys": b"}(" + KEY + b"K\x01u.",
    "ordered dictionary": b"ccollections\nOrderedDict\n](" + KEY + b"K\x01\x86e\x85R.",
    "set": b"c__builtin__\nset\n](" + KEY + b"e\x85R.",
    "name of a storage": KEY + b"X\x01\x00\x00\x00aX\x01\x00\x00\x00bX\x01\x00\x00\x00cK\x01tQ.",
}


def archive(content: bytes) -> bytes:
    """Return a file of torch with this pickle in it."""
    good, changed = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.zeros(2)}, good)
    with zipfile.ZipFile(good) as parts, zipfile.ZipFile(changed, "w") as copy:
        for each in parts.infolist():
            own = each.filename.endswith("data.pkl")
            copy.writestr(each.filename, content if own else parts.read(each))
    return changed.getvalue()


def old(content: bytes) -> bytes:
    """Return a file of torch's old format with this pickle in it."""
    good = io.BytesIO()
    torch.save({"a": torch.zeros(2)}, good, _use_new_zipfile_serialization=False)
    start = 0
    for _ in range(3):
        start += len(pickle.dumps(pickle.loads(good.getvalue()[start:]), protocol=2))
    return good.getvalue()[:start] + content


@pytest.mark.parametrize("form", [archive, old])
@pytest.mark.parametrize("case", HOSTILE)
def test_a_nested_key_is_refused(form, case, tmp_path):
    mark = b"(" if case == "name of a storage" else b""
    content = b"\x80\x02" + WIDE + mark + HOSTILE[case]
    path = tmp_path / "weights.pt"
    path.write_bytes(form(content))
    with pytest.raises(RefusedError, match="a tuple as a key"):
        read_tensors(path)
    with pytest.raises(DataError, match=r"read safely \(RefusedError\)"):
        read_checkpoint(str(path))


@pytest.mark.parametrize("zipped", [True, False])
def test_what_torch_saves_is_read(zipped, tmp_path):
    shared = torch.arange(6.0).reshape(2, 3)
    state = OrderedDict(a=shared, b=shared[0], c=torch.nn.Parameter(torch.ones(2)))
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))])
    saved = {"state": state, "optimizer": optimizer.state_dict(), "numbers": [(1, 2.0), None, True]}
    torch.save(saved, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
    found = read_tensors(tmp_path / "x.pt")
    assert found["numbers"] == saved["numbers"] and found["optimizer"] == saved["optimizer"]
    assert all(torch.equal(found["state"][name], tensor) for name, tensor in state.items())
