"""YAML that people write: plain values, or one error that is a ValueError."""

from __future__ import annotations

import math

import pytest

from benchmark.core.documents import Document, YamlError, parse_yaml, read_document

BILLIONS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 8)}]\n"
    for before, name in zip("abcdefghijk", "bcdefghijkl", strict=True)
)
YAML_REFUSED = {
    "an object": ("a: !!python/object:os.system x", "the tag .*python/object"),
    "bytes": ("a: !!binary eA==", "the tag !!binary in line 1"),
    "a set": ("!!set {a}", "the tag !!set"),
    "itself": ("a: &x [*x]", "contains itself in line 1"),
    "10^12 values in 12 lines": (BILLIONS, "more than 200,000 values in line "),
    "values at long places": (
        f"a: &a [{'1, ' * 900}]\n? {'k' * 5000}\n: [{'*a, ' * 900}]",
        "more than 200,000 values in line ",
    ),
    "5,000 digits": (f"a: {'9' * 5000}", "is not a plain decimal number"),
    "nesting that would overflow the stack": ("[" * 200_000, "more than 50 levels of nesting"),
    "a number as a key": ("1: 2", "the key 1 in line 1 is not text"),
    "a list as a key": ("? [a]\n: 1", "the key a sequence in line 1 is not text"),
    "a merge of a number": ("<<: 3", "expected a mapping or list of mappings"),
    "an unknown alias": ("a: *x", "undefined alias in line 1, column 4"),
    "two documents": ("--- 1\n--- 2", "another document in line 2"),
    "no number": ("a: !!int x", "x in line 1 is not a plain decimal number"),
    "a NUL": ("a\0: 1", "control characters are not allowed"),
}


@pytest.mark.parametrize("case", YAML_REFUSED)
def test_yaml_of_anything_but_plain_values_is_refused_in_one_line(case):
    text, words = YAML_REFUSED[case]
    with pytest.raises(YamlError, match=words) as caught:
        parse_yaml(text)
    assert "\n" not in str(caught.value)


def test_plain_yaml_is_read_with_its_lines_and_dates_stay_text():
    text = "a: 1e-3\nb: &x [1, true, null]\nc: *x\nd: 2024-13-45\ne: {<<: {f: 2}}\n"
    value, lines, _ = parse_yaml(text)
    assert value == {
        "a": 0.001,
        "b": [1, True, None],
        "c": [1, True, None],
        "d": "2024-13-45",
        "e": {"f": 2},
    }
    assert lines["d"] == 4
    assert parse_yaml("") == (None, {}, [])


ODD_NUMBERS = """010 08 -07 00.5 007e2 0x10 -0xff 0b11 0o17 1_000 0.1_5 1_0e3
1:30 08:30 1:30.5 -2:00:59"""


@pytest.mark.parametrize("number", [*ODD_NUMBERS.split(), "!!int 010", "!!float 1:30"])
def test_a_number_that_programs_read_as_different_ones_is_refused(number):
    with pytest.raises(YamlError) as caught:
        parse_yaml(f"#\na: [1, {number}]")
    written = number.split()[-1]
    assert str(caught.value) == (
        f"{written} in line 2 is not a plain decimal number; write digits alone, as in 10 or 0.5, "
        f"without leading zeros, '_', ':' or a base; as a text, put it into quotes: '{written}'"
    )
    assert parse_yaml(f"a: '{written}'")[0] == {"a": written}


def test_plain_decimal_numbers_are_numbers():
    numbers = "0, -0, +7, 10, -12, 0.5, .5, -.5, 1., -1.25, 1e3, 1E-3, 2.e+5, .5e05, 1e05, 0.0"
    texts = numbers.split(", ")
    value = parse_yaml(f"[{numbers}]")[0]
    assert value == [float(text) for text in texts]
    whole = [set("+-0123456789") >= set(text) for text in texts]
    assert [isinstance(each, int) for each in value] == whole
    words = "[1.2.3, 2024-01-02, 0x, 1:75, -, ., 1e, e3, 0 1, a_1, _1, 5px, 0b2]"
    assert parse_yaml(words)[0] == words.strip("[]").split(", ")
    assert parse_yaml("[.inf, -.inf]")[0] == [math.inf, -math.inf]


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


def test_keys_that_stand_twice_are_told_beside_a_merge_and_in_it(tmp_path, messages):
    text = "a: &a {x: 1}\nb:\n  <<: {y: 1, y: 2}\n  z: 1\n  <<: *a\n  z: 2\n"
    with messages.raised(*(("given_twice", f"b.{key}") for key in ("y", "<<", "z"))):
        document(tmp_path, text)
