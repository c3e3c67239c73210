"""The code version follows what the code does: not its words, its layout, or what comes after
training."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_runs import in_a_fork, tiny_spec

from benchmark.core import code_version as module
from benchmark.core.code_version import DECISIVE, code_version, meaning, mixed
from benchmark.core.registry import import_plugins
from benchmark.training.components import build_components

LOSS = '''
"""A loss."""
from dataclasses import dataclass
from benchmark.core.options import option

@LOSSES.register("toy", display="Toy", paper="Toy et al.", stochastic=False)
class Toy:
    """Words."""
    @dataclass
    class Config:
        """More words."""
        tau: float = option(0.1, above=0.0, help="temperature")

    def per_query(self, scores):
        """Return 1 - AP."""
        return scores * "1"  # twice
'''

MEANINGS: dict[tuple[str, bytes], str] = {}


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A copy of the package that a test may change."""
    copy = tmp_path / "benchmark"
    shutil.copytree(module.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(module, "PACKAGE", copy)
    monkeypatch.setattr(module, "meaning", kept_meaning)
    return copy


def kept_meaning(path: Path) -> str:
    """Return ``meaning(path)``, worked out once for each content: most files stay as they are."""
    content = path.suffix, path.read_bytes()
    if content not in MEANINGS:
        MEANINGS[content] = meaning(path)
    return MEANINGS[content]


def version() -> str:
    """Returns the version of what lies there now."""
    return module.version_of.__wrapped__(*DECISIVE)


def meaning_of(text: str, folder: Path) -> str:
    path = folder / "file.py"
    path.write_text(text)
    return meaning(path)


def test_it_is_the_package_version_and_a_digest():
    assert re.fullmatch(r"0\.1\.0\+[0-9a-f]{12}", code_version())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"""A loss."""\n', ""),
        ('"""Words."""', '"""Other words,\n    on two lines."""'),
        ('        """Return 1 - AP."""\n', ""),
        ("  # twice", ""),
        ('display="Toy"', 'display="A toy"'),
        ('paper="Toy et al.", ', ""),
        ('help="temperature"', 'help="how soft the ranks are"'),
        ("0.1, above=0.0, help", "\n            0.1,\n            above=0.0,\n            help"),
        ("\n", "\r\n"),
    ],
)
def test_words_for_people_and_layout_decide_nothing(before, after, tmp_path):
    assert before in LOSS
    assert meaning_of(LOSS, tmp_path) == meaning_of(LOSS.replace(before, after), tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("0.1, above", "0.2, above"),
        ("0.1, above", "True, above"),
        ("above=0.0", "at_least=0.0"),
        ('"toy"', '"toys"'),
        ("stochastic=False", "stochastic=True"),
        ('scores * "1"', 'scores * "2"'),
        ('scores * "1"', "scores * 1"),
        ("float = option", "int = option"),
        ("def per_query", "def per_batch"),
    ],
)
def test_what_the_code_does_decides(before, after, tmp_path):
    assert before in LOSS
    assert meaning_of(LOSS, tmp_path) != meaning_of(LOSS.replace(before, after), tmp_path)


# What training imports and what decides no number: {file: why}. A test holds this list complete.
UNDECISIVE = {
    "__init__.py": "the version of the package, which is told beside the digest",
    "core/__init__.py": "empty",
    "core/code_version.py": "this version",
    "core/environment.py": "names of variables, folders, free cores",
    "core/errors.py": "messages",
    "core/words.py": "words and numbers of messages",
    "core/files.py": "files",
    "core/interrupts.py": "signals",
    "core/paths.py": "files",
    "core/documents.py": "values of files that people type: a specification has its own digest",
    "core/provenance.py": "what computed a number",
    "core/backbones.py": "facts of weights that recipes are checked with",
    "core/registry.py": "names",
    "core/results.py": "files",
}


def imported_by_training() -> set[str]:
    """Return the files of the package that training loads, with every part that has a name."""
    code = """
import sys
from pathlib import Path
import benchmark.training.run
from benchmark.core.code_version import PACKAGE
from benchmark.datasets import DATASETS
from benchmark.input.samplers import SAMPLERS
from benchmark.losses import LOSSES
for registry in (DATASETS, SAMPLERS, LOSSES):
    [entry.target for entry in registry]
files = [getattr(each, "__file__", None) for each in [*sys.modules.values()]]
inside = [Path(file) for file in files if file and Path(file).is_relative_to(PACKAGE)]
print(*[path.relative_to(PACKAGE).as_posix() for path in inside], sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_module_that_training_imports_counts_but_for_a_complete_list(package):
    before = version()
    uncounted = set()
    for name in sorted(imported_by_training()):
        file = package / name
        text = file.read_text()
        file.write_text(text + "\n# changed\n")
        assert version() == before, f"words in {name}"
        file.write_text(text + "\nCHANGED = 1\n")
        if version() == before:
            uncounted.add(name)
        file.write_text(text)
    assert uncounted == set(UNDECISIVE)


@pytest.mark.parametrize("part", DECISIVE)
def test_every_part_that_decides_numbers_is_there(part):
    assert (module.PACKAGE / part).exists()


def test_a_change_of_the_report_does_not_make_finished_runs_look_old(package):
    before = version()
    (package / "report" / "new_page.py").write_text("x = 1\n")
    assert version() == before


def versions_of_runs(*losses: str) -> list[str]:
    """Return the versions of runs with these losses."""
    import_plugins()
    made = [build_components(tiny_spec(loss), torch.device("cpu")) for loss in losses]
    return [each.identity()["code_version"] for each in made]


def test_a_plugin_is_part_of_the_versions_of_the_runs_that_use_it(tmp_path, monkeypatch):
    code = """
from benchmark.losses import LOSSES
from benchmark.losses.rank_losses import SmoothAP

@LOSSES.register("{0}")
class Mine(SmoothAP):
    pass
"""
    for name in ("mine", "other"):
        (tmp_path / f"{name}.py").write_text(code.format(name))
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    smooth_ap, mine, other = in_a_fork(versions_of_runs, "smooth_ap", "mine", "other")
    assert smooth_ap == code_version()
    assert re.fullmatch(re.escape(smooth_ap) + r"\+mine-[0-9a-f]{12}", mine)
    assert mine != other
    (tmp_path / "mine.py").write_text("# words" + code.format("mine"))
    (tmp_path / "other.py").write_text(code.format("other") + "x = 1\n")
    same, changed = in_a_fork(versions_of_runs, "mine", "other")
    assert same == mine
    assert changed.rpartition("-")[0] == other.rpartition("-")[0]
    assert changed != other
    assert not mixed([smooth_ap, mine, other])
    assert mixed([mine, other, changed])
