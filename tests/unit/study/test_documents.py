"""YAML documents that know their lines."""

from __future__ import annotations

import pytest

from benchmark.core.documents import Document, read_document
from benchmark.core.errors import ConfigError

MERGED = """\
wide: &wide {loss: smooth_ap, tau: 0.5}
slow: &slow {tau: 0.9, slope: 2}
one:
  <<: {tau: 0.3}
  tau: 0.1
two:
  <<: [*wide, *slow]
  tau: 0.2
"""


def document(tmp_path, text: str) -> Document:
    (tmp_path / "x.yaml").write_text(text)
    return read_document(tmp_path / "x.yaml")


def test_a_key_beside_a_merge_takes_the_place_of_the_merged_one(tmp_path):
    found = document(tmp_path, MERGED)
    assert found.data["one"] == {"tau": 0.1}
    assert found.data["two"] == {"loss": "smooth_ap", "tau": 0.2, "slope": 2}
    lines = {key: line for key, line in found.lines.items() if key.startswith(("one.", "two."))}
    assert lines == {"one.tau": 5, "two.loss": 1, "two.tau": 8, "two.slope": 2}


def test_the_first_of_merged_mappings_gives_value_and_line(tmp_path):
    found = document(tmp_path, "a: &a {x: 1}\nb: &b {x: 2}\nc: {<<: [*a, *b]}\n")
    assert found.data["c"] == {"x": 1}
    assert found.lines["c.x"] == 1


def test_keys_that_stand_twice_are_told_beside_a_merge_and_in_it(tmp_path):
    text = "a: &a {x: 1}\nb:\n  <<: {y: 1, y: 2}\n  z: 1\n  <<: *a\n  z: 2\n"
    with pytest.raises(ConfigError) as caught:
        document(tmp_path, text)
    assert [str(problem) for problem in caught.value.problems] == [
        "b.y (line 3)  key given twice, first in line 3; keep one",
        "b.<< (line 5)  key given twice, first in line 3; keep one",
        "b.z (line 6)  key given twice, first in line 4; keep one",
    ]
