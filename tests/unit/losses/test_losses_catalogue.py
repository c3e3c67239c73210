"""The catalogue: facts without torch, rebuilt when a source changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import pytest

from benchmark.core import child_json
from benchmark.core.errors import ConfigError
from benchmark.core.registry import plugin_files
from benchmark.losses import LOSSES, catalogue
from benchmark.losses.catalogue import build_catalogue, load_catalogue

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
    digest = catalogue._digest_of(catalogue._sources())
    shutil.copy2(benchmark_cache / f"losses-{digest}.json", cache)
    return cache


@pytest.fixture
def built_here(monkeypatch):
    """Build the catalogue in this process where the process of its own is not what is tested."""
    losses = {name: asdict(facts) for name, facts in build_catalogue().items()}
    monkeypatch.setattr(child_json, "_run", lambda *_: json.dumps(losses))


def test_catalogue_lists_every_loss_with_its_schema(cache):
    found = load_catalogue()
    assert sorted(found) == sorted(LOSSES.names())
    assert found == build_catalogue()
    assert found["smooth_ap"].display == "SmoothAP"
    assert found["blackbox_ap"].stochastic is True
    assert found["proxy_nca"].accepts_references is False
    assert found["sup_ap"].schema["properties"]["offset"]["default"] is None
    cached = load_catalogue()
    for name, facts in build_catalogue().items():  # trials follow the order of options
        order = list(facts.schema["properties"])
        assert list(found[name].schema["properties"]) == order
        assert list(cached[name].schema["properties"]) == order


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
    assert load_catalogue()["toy_one"].schema["properties"]["slope"]["default"] == 2.0
    assert len(list(filled.iterdir())) == 2


def test_a_fact_that_no_loss_has_is_named():
    with pytest.raises(ConfigError, match="did you mean 'stochastic'"):
        LOSSES.register("toy_two", stochastik=True)


def test_broken_plugin_is_named(cache, tmp_path, monkeypatch):
    (tmp_path / "broken_loss.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    with pytest.raises(ConfigError, match="no_such_module_anywhere"):
        load_catalogue()
    assert not cache.exists() or not list(cache.iterdir())


def test_concurrent_builders_leave_a_whole_catalogue(cache):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: load_catalogue(), range(2))
    assert first == second == load_catalogue()
    assert len(list(cache.iterdir())) == 1


def test_a_damaged_or_altered_file_is_built_again(cache, built_here):
    whole = load_catalogue()
    (path,) = cache.iterdir()
    content = path.read_text()
    altered = json.loads(content)
    altered["told"]["smooth_ap"]["display"] = "another name"
    for damage in (content[:100], "[]", "{}", '{"losses": {}}', json.dumps(altered)):
        path.write_text(damage)
        assert load_catalogue() == whole
        assert path.read_text() == content


def test_a_cache_that_cannot_be_written_is_done_without(built_here, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BENCHMARK_CACHE", str(tmp_path / "file" / "cache"))
    assert sorted(load_catalogue()) == sorted(LOSSES.names())


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("import os\nos._exit(0)", "ended the process"),
        ("raise KeyboardInterrupt", r"1 problem, .*\n.*ends\.py, line 1: it cannot be imported"),
        ("import sys\nsys.exit(0)", r"ends\.py: cannot be imported: SystemExit: 0, line 2"),
    ],
)
def test_a_plugin_that_ends_the_process_is_named_as_a_problem(
    end, told, cache, tmp_path, monkeypatch
):
    (tmp_path / "ends.py").write_text(end)
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    with pytest.raises(ConfigError, match=told):
        load_catalogue()


def test_a_plugin_that_never_ends_is_given_up(cache, tmp_path, monkeypatch):
    (tmp_path / "loops.py").write_text("while True:\n    pass\n")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    monkeypatch.setattr(child_json, "PATIENCE", 0.5)
    with pytest.raises(ConfigError, match="does a plugin loop"):
        load_catalogue()


def test_two_plugins_of_one_name_are_refused_since_one_would_hide_the_other(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        (folder / "mine.py").write_text("")
    (folders[0] / "folder.py").mkdir()
    monkeypatch.setenv("BENCHMARK_PLUGINS", os.pathsep.join(map(str, folders)))
    with pytest.raises(ConfigError, match=r"'mine\.py' is there twice: .*first.*second"):
        plugin_files()


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/b", "", "two\n", "x" * 81, "\x1b[2J"])
def test_a_name_that_cannot_be_a_folder_is_not_registered(name):
    with pytest.raises(ConfigError, match="cannot be a name"):
        LOSSES.register(name)


def test_two_losses_of_one_name_in_a_plugin_are_said_before_a_run(cache, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(TOY.format(name="one") + TOY.format(name="one"))
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    told = (
        r"registry: 1 problem.*\n  plugin .*mine\.py: loss registry: 'toy_one' is registered twice"
    )
    with pytest.raises(ConfigError, match=told):
        load_catalogue()
