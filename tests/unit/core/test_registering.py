"""Names of components, and the folders with those of other people."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from benchmark.__main__ import main
from benchmark.core import registry as plugins_of
from benchmark.core.code_version import code_version
from benchmark.core.errors import ConfigError, RunError
from benchmark.core.records import LossChoice
from benchmark.core.registry import (
    ENTRY_POINTS,
    Registry,
    import_plugin,
    import_plugins,
    names_of_parts,
    plugin_files,
)
from benchmark.losses import LOSSES
from benchmark.losses.catalogue import load_catalogue
from tests.helpers.tiny_runs import in_a_fork, tiny_spec, write_spec_in


def test_entries_come_sorted_with_their_facts():
    registry = Registry("loss", "json", {"kind": "pair"})
    registry.register("b", display="B", kind="proxy")(int)
    registry.register("a")(str)
    facts = [(entry.name, entry.target, entry.display, entry.facts) for entry in registry]
    assert facts == [("a", str, "a", {"kind": "pair"}), ("b", int, "B", {"kind": "proxy"})]


def test_a_name_of_nobody_is_told_with_the_nearest_or_with_the_missing_plugins(
    monkeypatch, messages
):
    registry = Registry("loss", "json")
    registry.register("roadmap")(str)
    for name in ("raodmap", "ramp_ap"):
        with messages.raised():
            registry[name]
    monkeypatch.setenv("BENCHMARK_PLUGINS", "my_losses")
    with messages.raised():
        registry["ramp_ap"]


PARTS = """
from benchmark.report.figures import FIGURES
from benchmark.report.tables import TABLES
@TABLES.register("mine")
def build(inputs): ...
for number in (1, 2):
    FIGURES.register(f"mine_{number}")(build)
"""


def test_parts_of_plugins_are_known_however_they_are_registered(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(PARTS)
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    tables = in_a_fork(names_of_parts, "table")
    figures = in_a_fork(names_of_parts, "figure")
    assert {"mine", "comparison"} < set(tables)
    assert {"mine_1", "mine_2", "verdicts"} < set(figures)


def test_a_broken_plugin_shows_its_traceback_each_time(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_loss.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"broken_loss\.py"):
            load_catalogue()
        assert "no_such_module_anywhere" in capsys.readouterr().err


def test_a_folder_of_plugins_that_is_missing_is_named(tmp_path, monkeypatch, messages):
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "nowhere"))
    with messages.raised():
        plugin_files()


def test_hidden_files_of_other_systems_are_no_plugins(tmp_path, monkeypatch):
    (tmp_path / "._mine.py").write_bytes(b"\x00\x05\x16\x07")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    assert plugin_files() == []


def test_an_installed_package_adds_a_loss_by_an_entry_point(tmp_path, monkeypatch):
    code = "from benchmark.losses import LOSSES\n\n\n@LOSSES.register('mine')\nclass Mine: pass\n"
    (tmp_path / "my_losses").mkdir()
    (tmp_path / "my_losses" / "__init__.py").write_text(code)
    info = tmp_path / "my_losses-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: my-losses\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nmine = my_losses\n")
    monkeypatch.syspath_prepend(tmp_path)
    version, module = in_a_fork(version_and_module_of, "mine")
    (tmp_path / "my_losses" / "__init__.py").write_text(code + "x = 1\n")
    assert module == "my_losses"
    assert version.startswith(f"{code_version()}+my_losses-")
    assert in_a_fork(version_and_module_of, "mine")[0] != version


def version_and_module_of(loss: str) -> tuple[str, str]:
    """Return the version of the code with an installed loss, and the module of the loss."""
    plugins_of._import_packages.cache_clear()
    import_plugins()
    module = LOSSES[loss].target.__module__
    return code_version(module), module


ENDING = """
import sys
from benchmark.losses import LOSSES
from benchmark.losses.base import Loss
@LOSSES.register("ending")
class Ending(Loss):
    def forward(self, *batch, **options):
        sys.exit(0)
"""


@pytest.mark.parametrize(
    ("name", "content"), [("leaving", "import sys; sys.exit(0)"), ("quitting", "quit()")]
)
def test_a_plugin_that_ends_the_program_is_an_error_that_names_its_file(name, content, tmp_path):
    path = tmp_path / f"{name}.py"
    path.write_text(content)
    with pytest.raises(RunError, match=f"{path}, line 1"):
        import_plugin(path)


def command(*words: str) -> None:
    import_plugins()
    sys.argv = ["benchmark", *words]
    main()


def test_a_loss_that_ends_its_training_is_an_error_that_names_its_file(
    tmp_path, monkeypatch, capfd
):
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "ending.py").write_text(ENDING)
    spec = replace(tiny_spec(), loss=LossChoice("ending", "ending", {}))
    path = write_spec_in(tmp_path / "run", spec)
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(plugins))
    with pytest.raises(SystemExit) as ended:
        in_a_fork(command, "train", "--spec", str(path))
    assert ended.value.code == 2
    assert f"{plugins / 'ending.py'}, line 8:" in capfd.readouterr().err
    assert not (path.parent / "result.json").exists()
