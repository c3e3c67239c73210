"""The rules of docs/architecture.md that no single module can keep on its own."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
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
PACKAGES = 14


def allowed_imports(part: str) -> set[str]:
    """Return the packages that ``part`` may import, itself included."""
    level = next(number for number, parts in enumerate(ORDER) if part in parts)
    allowed = {name for parts in ORDER[: level + 1] for name in parts}
    return allowed - ({"training"} if part in WITHOUT_TRAINING else set())


def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py"))


def imported_parts(path: Path) -> set[str]:
    """Returns the top-level parts of the package that a file imports, at the top or inside a
    function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "benchmark":
            found |= {f"benchmark.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module)
    names = {name.split(".")[1] for name in found if name.startswith("benchmark.")}
    return {
        name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()
    }


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
    wrong = imported_parts(path) - allowed_imports(part)
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
