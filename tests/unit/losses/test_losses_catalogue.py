"""The catalogue: facts of losses without torch, those of plugins as well."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from benchmark.core.options import defaults_of
from benchmark.losses import LOSSES
from benchmark.losses.catalogue import load_catalogue

TOY = """
from dataclasses import dataclass

from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.core.options import option


@LOSSES.register("toy", display="Toy", paper="nobody", stochastic=True)
class Toy(RankingLoss):
    @dataclass(frozen=True, kw_only=True)
    class Config(RankingLoss.Config):
        slope: float = option(2.0, above=0.0, help="slope")
"""
SHOW = """
import json
import sys

from benchmark.core.options import defaults_of
from benchmark.losses.catalogue import load_catalogue

found = load_catalogue()
toy = found.get("toy")
if toy:
    wrong = [each.key for each in toy.problems({"slope": 0.0})]
    toy = [toy.display, toy.kind, toy.stochastic, defaults_of(toy.config), wrong]
print(json.dumps(["torch" in sys.modules, len(found), toy]))
"""


def shown(**variables: str) -> list:
    environment = {**os.environ, **variables}
    return json.loads(subprocess.check_output([sys.executable, "-c", SHOW], env=environment))


def test_catalogue_lists_every_loss_with_the_config_that_it_is_made_from():
    found = load_catalogue()
    assert list(found) == LOSSES.names()
    for entry in LOSSES:
        facts = found[entry.name]
        assert facts.config is entry.target.Config
        assert facts.display == entry.display
        assert {name: getattr(facts, name) for name in entry.facts} == entry.facts
    assert found["smooth_ap"].display == "SmoothAP"
    assert found["blackbox_ap"].stochastic is True
    assert found["proxy_nca"].accepts_references is False
    assert defaults_of(found["sup_ap"].config)["offset"] is None
    assert [each.key for each in found["recall_at_k"].problems({"ks": [0, 1]})] == ["ks.0"]


def test_the_losses_of_the_suite_are_known_without_torch():
    assert shown() == [False, len(LOSSES.names()), None]


def test_a_plugin_enters_the_catalogue_with_its_own_config(tmp_path):
    (tmp_path / "toy.py").write_text(TOY)
    _, count, toy = shown(BENCHMARK_PLUGINS=str(tmp_path))
    options = {"include_query": True, "slope": 2.0}
    assert toy == ["Toy", "ranking", True, options, ["slope"]]
    assert count == len(LOSSES.names()) + 1
