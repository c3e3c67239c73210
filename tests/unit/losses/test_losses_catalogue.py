"""The catalogue: facts without torch, rebuilt when a source changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmark.core.errors import ConfigError
from benchmark.core.options import defaults_of, options_of
from benchmark.losses import LOSSES, catalogue
from benchmark.losses.catalogue import LossFacts, build_catalogue, load_catalogue

TOY = """
from dataclasses import dataclass

from benchmark.losses import LOSSES, catalogue
from benchmark.losses.base import RankingLoss
from benchmark.core.options import option


@LOSSES.register("toy_{name}", display="Toy", paper="nobody")
class Toy(RankingLoss):
    @dataclass(frozen=True, kw_only=True)
    class Config:
        slope: float = option(2.0, above=0.0, help="slope")
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHMARK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def filled(benchmark_cache, cache, monkeypatch):
    """Return a cache with a copy of the catalogue that all tests share."""
    with monkeypatch.context() as patch:
        patch.setenv("BENCHMARK_CACHE", str(benchmark_cache))
        load_catalogue()
    cache.mkdir()
    digest = catalogue._digest(catalogue._sources())
    shutil.copy2(benchmark_cache / f"losses-{digest}.json", cache)
    return cache


def test_catalogue_lists_every_loss_with_its_options(cache):
    found = load_catalogue()
    assert sorted(found) == sorted(LOSSES.names())
    built = {name: LossFacts(**facts) for name, facts in build_catalogue().items()}
    assert found == built
    assert found["smooth_ap"].display == "SmoothAP"
    assert found["blackbox_ap"].stochastic is True
    assert found["proxy_nca"].accepts_references is False
    assert defaults_of(found["sup_ap"].config)["offset"] is None
    assert [each.key for each in found["recall_at_k"].problems({"ks": [0, 1]})] == ["ks.0"]
    cached = load_catalogue()
    for name, facts in built.items():  # trials follow the order of options
        order = list(options_of(facts.config))
        assert list(options_of(found[name].config)) == order
        assert list(options_of(cached[name].config)) == order


def test_reading_the_catalogue_imports_no_torch_and_builds_once(filled):
    (path,) = filled.iterdir()
    stamp = path.stat().st_mtime_ns
    code = (
        "import sys; from benchmark.losses.catalogue import load_catalogue; load_catalogue(); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert path.stat().st_mtime_ns == stamp


def test_plugin_file_enters_the_catalogue(filled, tmp_path, monkeypatch):
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "toy_one.py").write_text(TOY.replace("{name}", "one"))
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(plugins))
    assert defaults_of(load_catalogue()["toy_one"].config) == {"slope": 2.0}
    assert len(list(filled.iterdir())) == 2


def test_broken_plugin_shows_its_traceback(cache, tmp_path, monkeypatch, capfd):
    (tmp_path / "broken_loss.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    with pytest.raises(ConfigError, match="loss registry"):
        load_catalogue()
    assert "no_such_module_anywhere" in capfd.readouterr().err
    assert not cache.exists() or not list(cache.iterdir())


def test_concurrent_builders_leave_a_whole_catalogue(cache):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: load_catalogue(), range(2))
    assert first == second == load_catalogue()
    assert len(list(cache.iterdir())) == 1
