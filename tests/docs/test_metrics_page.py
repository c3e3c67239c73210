"""The numbers of docs/metrics.md, computed again."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from pages import ROOT, blocks

from benchmark.metrics import score
from benchmark.metrics.protocols import meanings

PAGE = ROOT / "docs" / "metrics.md"
TEXT = PAGE.read_text(encoding="utf-8")


def ten_items():
    angles = np.arange(11) / 10  # the query, and items that are farther and farther away
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    labels = np.full(11, 9)
    labels[[0, 1, 4, 6]] = 1
    cameras = np.arange(11)
    cameras[4] = cameras[0]
    return score(
        rows,
        labels,
        query=[0],
        gallery=np.arange(1, 11),
        cameras=cameras,
        recall_at=(1, 3),
        map_at=(2,),
    ).records


def test_the_ranking_of_ten_items_has_these_numbers():
    printed = {
        name: (float(plain), float(camera))
        for name, plain, camera in re.findall(
            r"^\| `(\w+)` \| (\d\.\d{4}) \| (\d\.\d{4}) \|$", TEXT, re.MULTILINE
        )
    }
    found = {(each.protocol, each.metric): each.value for each in ten_items()}
    metrics = {metric for protocol, metric in found if protocol == "gallery"}
    assert set(printed) == metrics
    for metric, values in printed.items():
        for protocol, value in zip(("gallery", "gallery_other_camera"), values, strict=True):
            # four printed digits
            assert found[protocol, metric] == pytest.approx(value, abs=5e-5), (protocol, metric)
    hit, miss = re.findall(r"= (0\.\d{4}) as a", TEXT)
    assert float(hit) == pytest.approx((1 + 1 + 3 / 5 + 4 / 7) / 4, abs=5e-5)
    assert float(miss) == pytest.approx((1 / 2 + 2 / 5 + 3 / 7) / 3, abs=5e-5)


def test_the_page_has_every_protocol_and_every_metric():
    named = set(re.findall(r"`(\w+)`", TEXT))
    assert set(meanings("protocols")) | set(meanings("metrics")) <= named


def test_the_first_example_runs_and_prints_facts_and_scores(tmp_path):
    first = next(each for each in blocks(PAGE) if each.language == "python")
    (tmp_path / first.title).write_text(first.text)
    command = [sys.executable, str(tmp_path / first.title)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("{'rows': 500")
    assert re.search(r"^others recall_at_1 \d+\.\d\d 500 each row queries", done.stdout, re.M)
