"""What is installed is pinned by hash, and nothing that comes from outside is executed when it is
read."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*(ROOT / "benchmark").rglob("*.py"), *(ROOT / "envs").glob("*.py")])

# Readers that run code from the file, with the keyword (and its value) that keeps them from it;
# None: never allowed.
READERS: dict[str, tuple[str, bool] | None] = {
    "torch.load": ("weights_only", True),
    "np.load": ("allow_pickle", False),
    "numpy.load": ("allow_pickle", False),
    **dict.fromkeys(("pickle.load", "pickle.loads", "pickle.Unpickler", "joblib.load")),
    **dict.fromkeys(("dill.load", "shelve.open", "marshal.loads", "pd.read_pickle")),
    **dict.fromkeys(("pandas.read_pickle", "yaml.load", "yaml.unsafe_load", "yaml.full_load")),
    **dict.fromkeys(("torch.hub.load", "eval", "exec")),
}
DEFAULT_IS_SAFE = {"np.load", "numpy.load"}  # allow_pickle is False unless said
SAFE_LOADERS = {"yaml.SafeLoader", "yaml.CSafeLoader"}


def unsafe_reads(tree: ast.AST) -> list[tuple[int, str]]:
    """Return (line, call) of every call that may execute what it reads."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = {node.name: {ast.unparse(base) for base in node.bases} for node in classes}
    safe = {name for name, of in bases.items() if of <= SAFE_LOADERS} | SAFE_LOADERS
    found = [
        (node.lineno, "pickle.Unpickler")
        for node in classes
        if bases[node.name] & {"pickle.Unpickler", "pickle._Unpickler"}
        and "find_class" not in {getattr(item, "name", "") for item in node.body}
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or (name := ast.unparse(node.func)) not in READERS:
            continue
        given = {item.arg: item.value for item in node.keywords}
        loaders = {ast.unparse(value) for value in (*node.args[1:], *given.values())}
        if name == "yaml.load" and loaders and loaders <= safe:
            continue
        keyword, wanted = READERS[name] or ("", None)
        value = given.get(keyword)
        by_default = value is None and name in DEFAULT_IS_SAFE
        if not by_default and not (isinstance(value, ast.Constant) and value.value is wanted):
            found.append((node.lineno, name))
    return found


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("torch.load(path)", ["torch.load"]),
        ("torch.load(path, weights_only=False)", ["torch.load"]),
        ("torch.load(path, weights_only=True)", []),
        ("np.load(path)", []),
        ("np.load(path, allow_pickle=True)", ["np.load"]),
        ("np.load(path, allow_pickle=flag)", ["np.load"]),
        ("yaml.load(text, Loader=yaml.Loader)", ["yaml.load"]),
        ("class Odd(yaml.Loader): pass\nyaml.load(text, Odd)", ["yaml.load"]),
        ("class Own(yaml.SafeLoader): pass\nyaml.load(text, Own); yaml.load(text, Loader=Own)", []),
        ("yaml.safe_load(text); json.load(stream)", []),
        ("class Any(pickle.Unpickler): pass", ["pickle.Unpickler"]),
        ("class Any(pickle._Unpickler): pass", ["pickle.Unpickler"]),
        ("class Few(pickle.Unpickler):\n def find_class(self, module, name): raise ValueError", []),
        ("pickle.loads(data)", ["pickle.loads"]),
        ("model.eval()", []),
    ],
)
def test_the_search_finds_what_executes_and_nothing_else(code, calls):
    assert [name for _, name in unsafe_reads(ast.parse(code))] == calls


# What a process reads from its own child, which runs a candidate that the user named.
FROM_ITSELF = {"benchmark/losses/conformance/bounded.py: pickle.loads"}


def test_no_file_from_outside_is_executed_when_it_is_read():
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for _, name in unsafe_reads(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert len(SOURCES) > 100
    assert set(found) == FROM_ITSELF
    assert len(found) == 1


LOCKS = sorted((ROOT / "envs").glob("*.lock"))


def locked(path: Path) -> list[str]:
    """Return the requirements of a lock file, one a line, without comments."""
    lines = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8")).splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_is_pinned_and_hashed(path):
    pattern = r"[a-z0-9.-]+==[\w.+]+( ; [^-]+)?( ?--hash=sha256:[0-9a-f]{64})+"
    lines = locked(path)
    assert lines
    assert [line[:100] for line in lines if not re.fullmatch(pattern, line)] == []


def test_make_and_the_image_install_from_locks_alone_and_check_their_hashes():
    """One command installs the project itself, which is no package of an index."""
    printed = subprocess.check_output(["make", "-nB", "venv"], cwd=ROOT, text=True)
    lines = printed + (ROOT / "envs" / "apptainer.def").read_text(encoding="utf-8")
    installs = [line for line in lines.splitlines() if "pip install" in line]
    installs = [line for line in installs if " -e ." not in line]
    assert len(installs) == 4
    for line in installs:
        assert "--require-hashes" in line
        assert "--no-deps" in line
        locks = re.findall(r"-r \S*?([\w-]+\.lock)", line)
        assert locks
        assert all((ROOT / "envs" / name).is_file() for name in locks)


def test_the_locks_hold_a_version_in_each_range_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    ranges = [Requirement(text) for texts in (project["dependencies"], *extras) for text in texts]
    pins = [line.split()[0].split("==") for path in LOCKS for line in locked(path)]
    versions = {name: version.split("+")[0] for name, version in pins}
    outside = [
        str(wanted)
        for wanted in ranges
        if wanted.name != project["name"]
        and versions.get(wanted.name.lower(), "none") not in wanted.specifier
    ]
    assert len(ranges) > 30
    assert not outside
