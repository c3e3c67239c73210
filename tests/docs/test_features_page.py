"""The page on features, followed word for word in a copy of the repository."""

from __future__ import annotations

import pytest
from pages import ROOT, blocks, followed

PAGE = ROOT / "docs" / "features.md"


@pytest.mark.stress
def test_following_the_page_ranks_the_heads_and_the_untrained_features(
    tmp_path,
):
    copy, printed = followed(blocks(PAGE), tmp_path)
    page = (copy / "results/digits/report/index.html").read_text()
    assert "Ranks of heads by mean R@1" in printed
    assert "Not trained, as_given" in printed
    assert "that says nothing of fine-tuning" in page
