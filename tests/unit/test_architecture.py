"""The rules of docs/architecture.md that no single module can keep on its own."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "benchmark"

# Each package may import itself and those before it; the components stand on one level.
COMPONENTS = ("losses", "datasets", "input", "models", "metrics")
ORDER = (
    ("core",),
    COMPONENTS,
    ("training",),
    ("study",),
    ("runs",),
    ("stats",),
    ("papers",),
    ("report",),
    ("analyses",),
    ("cli",),
    ("__main__", "__init__"),
)
# What a package that may import training never does: only analyses train.
WITHOUT_TRAINING = ("study", "runs", "stats", "papers", "report")
TORCH_FREE = {  # one process each
    "planning": ["core", "study"],
    "data": ["datasets", "input.samplers"],
    "statistics": ["runs", "stats", "papers"],
    "presentation": ["report"],
    "command line": ["cli", "__main__"],
}
# Lines and statements of each package, at most. To raise one is a change of its own, with its
# reason beside it.
BUDGETS = {
    "__init__.py": (10, 10),
    "__main__.py": (60, 40),
    "analyses": (1_500, 1_000),
    "cli": (1_480, 800),
    "core": (2_420, 1_360),
    "datasets": (2_840, 1_720),
    "input": (1_070, 650),
    "losses": (3_920, 2_280),
    "metrics": (800, 430),
    "models": (570, 390),
    "papers": (4_460, 2_670),
    "report": (4_860, 2_950),
    "runs": (1_120, 730),
    "stats": (2_510, 1_470),
    "study": (2_120, 1_300),
    "training": (1_890, 1_200),
}
WHOLE = (31_630, 19_000)
FILES, ALONE = 160, 25  # files of the package; those whose only importer lies beside them
# One idea in two packages: a study on own images, and its verbs.
SAME = {"own.py"}


def allowed_imports(part: str) -> set[str]:
    """Return the packages that ``part`` may import, itself included."""
    level = next(number for number, parts in enumerate(ORDER) if part in parts)
    allowed = {name for parts in ORDER[: level + 1] for name in parts}
    return allowed - ({"training"} if part in WITHOUT_TRAINING else set())


def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py"))


@cache
def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sources()
    }


@cache
def imported(path: Path) -> set[str]:
    """Return the modules that a file imports when it runs, at the top or inside a function."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & set(modules()) or {node.module}
    return found & set(modules())


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_one_way(path):
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    wrong = {name.split(".")[1] for name in imported(path) if "." in name} - allowed_imports(part)
    assert not wrong, (
        f"{path.relative_to(ROOT)} imports {sorted(wrong)}, which is above or beside '{part}'"
    )


@pytest.mark.parametrize("parts", TORCH_FREE.values(), ids=TORCH_FREE)
def test_importing_a_torch_free_part_does_not_import_torch(parts):
    code = """
import importlib, pkgutil, sys
for part in sys.argv[1:]:
    module = importlib.import_module(f"benchmark.{part}")
    folders = getattr(module, "__path__", [])
    names = [info.name for info in pkgutil.walk_packages(folders, f"benchmark.{part}.")]
    for name in [module.__name__, *names]:
        importlib.import_module(name)
        if "torch" in sys.modules:
            sys.exit(f"{name} imports torch")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *parts], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


def test_the_training_side_of_tracking_does_not_import_mlflow():
    code = "import sys, benchmark.training.progress; sys.exit('mlflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_no_committed_file_names_a_folder_of_the_machine_it_was_written_on():
    slash = "/"  # kept apart from the words, so that this file does not match itself
    homes = "|".join(f"{slash}{name}{slash}" for name in ("root", "work"))
    # neutral examples ('somebody', 'me', 'user') are allowed in tests and documentation
    people = rf"{slash}(?:home|Users){slash}(?!somebody|someone|me\b|user|you|x{slash}|\.)\w+"
    pattern = re.compile(rf"(?<![\w./-])(?:{homes}|{people})|{re.escape(str(ROOT))}{slash}")
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in pattern.finditer(text)]
    assert found == []


def test_test_files_have_names_of_their_own():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def sizes() -> dict[str, tuple[int, int]]:
    """Return the lines and statements of each package; what lies beside them counts as one."""
    found = dict.fromkeys(BUDGETS, (0, 0))
    for path in sources():
        text = path.read_text(encoding="utf-8")
        part = path.relative_to(PACKAGE).parts[0]
        lines, statements = found.get(part, (0, 0))
        statements += sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(text)))
        found[part] = (lines + text.count("\n"), statements)
    return found


def test_each_package_keeps_its_budget():
    over = {
        part: f"{size} of {BUDGETS.get(part)}"
        for part, size in sizes().items()
        if not (part in BUDGETS and all(map(int.__le__, size, BUDGETS[part])))
    }
    assert over == {}
    assert tuple(map(sum, zip(*BUDGETS.values(), strict=True))) == WHOLE


def test_files_stand_for_concepts_and_import_without_a_circle():
    graph = {name: imported(path) - {name} for name, path in modules().items()}
    importers = {name: {other for other in graph if name in graph[other]} for name in graph}
    folder = {name: path.parent for name, path in modules().items()}
    alone = {
        name
        for name, others in importers.items()
        if len(others) == 1 and folder[name] == folder[min(others)]
    }
    assert len(graph) <= FILES
    assert len(alone) <= ALONE, sorted(alone)
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_files_of_one_name_are_about_one_thing():
    names = [path.name for path in sources() if path.name not in ("__init__.py", "base.py")]
    assert {name for name in names if names.count(name) > 1} == SAME
