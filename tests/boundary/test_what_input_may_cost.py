"""Regular files of bounded size are read, no input is written over, and messages are short."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import yaml
from test_typed_files_and_names import GOOD, study
from typer.main import get_command
from workplace import STUCK

from benchmark.__main__ import app
from benchmark.cli import Verb
from benchmark.core.errors import shortened
from benchmark.core.files import check_regular

# Of each verb, the file that is a pipe, and the words before it.
PIPES = {
    "a study": ("x.yaml", "validate x.yaml"),
    "a study to plan": ("x.yaml", "plan x.yaml"),
    "a recipe": ("recipes/mine.yaml", "validate mine_study.yaml"),
    "a checkpoint": ("weights.pth", "plan with_weights.yaml"),
    "weights for images": ("w.pth", "folder init images --backbone resnet18 --checkpoint w.pth"),
    "a split": ("split.csv", "data check folder --root . --param split_csv=split.csv"),
    "an archive": ("cub.tgz", "data prepare cub --root cub --source cub.tgz"),
    "a ground truth": ("g.pkl", "score rows.npy --gallery rows.npy --ground-truth g.pkl"),
    "a candidate": ("mine.py", "conform mine.py --as smooth_ap"),
    "an own loss": ("mine.py", "challenge mine.py"),
    "a specification": ("spec.json", "train --spec spec.json"),
}


@pytest.fixture
def pipes_do_not_hang():
    """Let a program that reads a pipe fail instead of waiting for ever."""

    def stuck(*_: object) -> None:
        raise AssertionError("it waits for a pipe")

    before = signal.signal(signal.SIGALRM, stuck)
    signal.alarm(STUCK)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("case", PIPES)
def test_a_pipe_is_refused_at_once_by_its_name(command, pipes_do_not_hang, case):
    path, words = PIPES[case]
    Path("recipes").mkdir()
    Path("images").mkdir()
    np.save("rows.npy", np.ones((4, 2), "float32"))
    of_recipe = yaml.safe_load(study({"recipe": "mine"}))
    Path("mine_study.yaml").write_text(yaml.safe_dump({**of_recipe, "study": "mine_study"}))
    model = {"pretrained": True, "checkpoint": "weights.pth"}
    weighted = yaml.safe_load(study({"override": {"model": model}, "option": "own"}))
    Path("with_weights.yaml").write_text(yaml.safe_dump({**weighted, "study": "with_weights"}))
    os.mkfifo(path)
    status, said = command(*words.split())
    assert status == 2
    assert Path(path).name in said
    assert "not a regular file" in said or "is not a file" in said or "not a Python file" in said


@pytest.mark.parametrize("root", ["pipe", "file", "absent", "device"])
def test_runs_on_a_root_that_is_no_folder_cannot_start(command, root):
    os.mkfifo("pipe")
    Path("file").write_text("x")
    Path("device").symlink_to("/dev/zero")
    folder = {"name": "folder", "label": "mine", "params": {"root": root}}
    Path("x.yaml").write_text(study({"datasets": [folder], "option": None}))
    status, said = command("plan", "x.yaml")
    assert status == 0, said
    assert "files: 0 of 1 there, 0 runs can start" in said
    assert f"4 runs wait for dataset folder ({root})" in said


def test_an_image_that_is_a_pipe_is_refused(pipes_do_not_hang, tmp_path):
    from benchmark.core.errors import DataError
    from benchmark.datasets.io.images import open_image

    os.mkfifo(tmp_path / "a.jpg")
    with pytest.raises(DataError, match="not a regular file"):
        open_image(tmp_path / "a.jpg")


def test_a_device_behind_a_link_and_a_large_file_are_no_documents(command):
    Path("x.yaml").symlink_to("/dev/zero")
    with pytest.raises(Exception, match="not a regular file"):
        check_regular(Path("x.yaml"))
    check_regular(Path("absent.yaml"))
    with open("large.yaml", "wb") as file:
        file.truncate(2**33)
    status, said = command("validate", "large.yaml")
    assert status == 2
    assert "8,589,934,592 bytes (allowed: 10,000,000)" in said


def test_a_paper_whose_numbers_are_a_pipe_is_refused(
    command, pipes_do_not_hang, tmp_path, monkeypatch
):
    paper = tmp_path / "plugins" / "mine2020"
    paper.mkdir(parents=True)
    (paper / "paper.yaml").write_text("citation: x\n")
    os.mkfifo(paper / "results.csv")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "plugins"))
    status, said = command("validate", "embedded")
    assert status == 2
    assert "results.csv is not a regular file" in said


# What one call may not write: words, and the file that is named twice.
CLASHES = {
    "the input": "score z.npz --csv z.npz",
    "another spelling": "score z.npz --json new/../z.npz",
    "a link to the input": "score z.npz --csv link.npz",
    "a second name of the input": "score z.npz --csv hard.npz",
    "a further input": "score rows.npy --labels labels.csv --csv labels.csv",
    "the other output": "score z.npz --csv out.csv --json ./out.csv",
    "a candidate": "conform mine.py --as smooth_ap --json mine.py",
    "a study": "fidelity x.yaml --csv x.yaml",
    "the tables of a study": "freeze x.yaml --out results/x/runs.csv",
}


@pytest.mark.parametrize("case", CLASHES)
def test_an_output_that_is_an_input_is_refused_before_anything_is_read(command, case):
    np.savez("z.npz", embeddings=np.eye(4, dtype="float32"), labels=[0, 0, 1, 1])
    np.save("rows.npy", np.eye(4, dtype="float32"))
    Path("labels.csv").write_text("labels\n0\n0\n1\n1\n")
    Path("link.npz").symlink_to("z.npz")
    os.link("z.npz", "hard.npz")
    Path("mine.py").write_text("def loss(rows, labels):\n    return rows.sum()\n")
    Path("x.yaml").write_text(GOOD)
    tables = Path("results/x")
    tables.mkdir(parents=True)
    (tables / "runs.csv").write_text("run_id\n")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    status, said = command(*CLASHES[case].split())
    assert status == 2
    assert "choose another place" in said
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_every_verb_that_writes_a_file_compares_it_with_its_inputs():
    def commands(group):
        for each in group.commands.values():
            yield from commands(each) if hasattr(each, "commands") else [each]

    writing = {"file_to_write", "place_to_write"}
    names = set()
    for each in commands(get_command(app)):
        for option in each.params:
            if getattr(option.callback, "__name__", "") in writing:
                assert isinstance(each, Verb), each.name
                names.add(each.name)
    assert names >= {"score", "conform", "fidelity", "freeze"}


def test_a_long_message_keeps_its_start_and_its_advice():
    message = f"x.npz has {'n, ' * 100_000}which are the rows? Say --key embeddings=NAME"
    short = shortened(message)
    assert len(short.encode()) <= 2_000
    assert short.startswith("x.npz has n, ")
    assert short.endswith("which are the rows? Say --key embeddings=NAME")
    assert "298," in short
    assert shortened("é" * 900) == "é" * 900
    assert len(shortened("\N{CJK UNIFIED IDEOGRAPH-4E00}" * 10_000).encode()) <= 2_000


def test_thousands_of_problems_are_one_short_message(command):
    wrong = {f"key{number}": 1 for number in range(3_000)}
    Path("x.yaml").write_text(yaml.safe_dump({**yaml.safe_load(GOOD), **wrong}))
    status, said = command("validate", "x.yaml")
    assert status == 2
    assert "x.yaml: 3000 problems" in said or "x.yaml: 3,000 problems" in said
    assert len(said.encode()) <= 2_000


@pytest.mark.parametrize("many", ["seeds", "batch sizes", "losses"])
def test_more_runs_than_allowed_are_counted_before_anything_else_is_checked(
    command, monkeypatch, many
):
    from benchmark.study.load import Checker

    def checked(*_: object) -> None:
        raise AssertionError("a block was checked")

    monkeypatch.setattr(Checker, "block", checked)
    names = [f"w{number}" for number in range(20_000)]
    changes = {
        "seeds": study(seeds=list(range(60_000))),
        "batch sizes": study({"batch_sizes": list(range(32, 60_032))}, seeds=[0]),
        "losses": study(
            {"losses": names},
            seeds=[0, 1, 2, 3, 4, 5],
            losses={name: {"loss": "smooth_ap"} for name in names},
            comparison={"baseline": "w0"},
        ),
    }
    Path("x.yaml").write_text(changes[many])
    status, said = command("validate", "x.yaml")
    assert status == 2
    assert "120,000 runs (allowed: 100,000)" in said
