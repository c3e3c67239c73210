"""The committed lists of names are those of what is installed."""

from __future__ import annotations

import pytest
from installed_names import FILES, PACKAGE, text_of


@pytest.mark.parametrize("file", FILES)
def test_a_committed_list_is_what_make_names_writes(file):
    assert (PACKAGE / file).read_text(encoding="utf-8") == text_of(file), "run 'make names'"
