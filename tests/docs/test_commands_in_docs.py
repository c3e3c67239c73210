"""What the documentation tells people to type exists: verbs, options, targets, studies, files and
sections."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
import typer
from pages import FENCE, ROOT, pages, shown_commands
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.study import study_names

COMMANDS = [
    (page, command) for page in pages() for command in shown_commands(page, "python -m benchmark")
]
VERBS = [name for name, verb in typer.main.get_command(app).commands.items() if not verb.hidden]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def place_and_words(value: object) -> str:
    return value.relative_to(ROOT).as_posix() if isinstance(value, Path) else str(value)


def test_the_documentation_shows_commands():
    assert len({command for _, command in COMMANDS}) > 20


@pytest.mark.parametrize(("page", "command"), sorted(set(COMMANDS)), ids=place_and_words)
def test_a_command_has_its_verb_and_its_options(page, command):
    words = shlex.split(command)[3:]
    verb = typer.main.get_command(app)
    while hasattr(verb, "commands") and words and not words[0].startswith("-"):
        known = verb.commands
        if words[0].isupper():  # a placeholder: VERB
            return
        assert words[0] in known, f"no verb '{words[0]}' (known: {', '.join(known)})"
        verb = known[words.pop(0)]
    known = {
        name: option for option in verb.params for name in (*option.opts, *option.secondary_opts)
    }
    arguments = [parameter for parameter in verb.params if parameter.param_type_name == "argument"]
    given = []
    while words:
        word, _, value = words.pop(0).partition("=")
        if not word.startswith("-"):
            given.append(word)
        elif word != "--help":
            assert word in known, f"no option {word} (known: {', '.join(known)})"
            if not known[word].is_flag and not value:
                assert words, f"{word} needs a value"
                words.pop(0)
    if not any(argument.nargs == -1 for argument in arguments):
        assert len(given) <= len(arguments), f"{given} are more than {len(arguments)} arguments"


def test_help_lists_twenty_verbs_in_a_short_line_each_the_most_used_first():
    text = CliRunner().invoke(app, ["--help"]).output
    lines = re.findall(r"^  ([a-z][a-z-]+) +(\S.*)$", text, re.MULTILINE)
    listed = [name for name, words in lines if words.endswith(".") and name in VERBS]
    assert listed[0] == "run"
    assert len(listed) <= 20
    assert all(len(words) <= 60 for name, words in lines if name in VERBS)
    assert all(re.search(rf"\b{name}\b", text) for name in VERBS)


@pytest.mark.parametrize("page", pages(), ids=place_and_words)
def test_targets_of_make_exist(page):
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in shown_commands(page, "make"):
        words = shlex.split(command)[1:]
        targets = {word for word in words if "=" not in word and not word.startswith("-")}
        assert targets <= known, command


@pytest.mark.parametrize("page", pages(), ids=place_and_words)
def test_profiles_and_studies_given_to_snakemake_exist(page):
    for command in shown_commands(page, "snakemake"):
        for profile in re.findall(r"--profile (\S+)", command):
            assert (ROOT / profile / "config.yaml").is_file(), command
        for study in re.findall(r"study=(\S+)", command):
            assert study in study_names() or study.isupper(), command
        for file in re.findall(r"--configfile (workflow\S+)", command):
            assert (ROOT / file).is_file(), command


def test_the_rule_of_a_workflow_of_ones_own_finds_the_best_runs_in_strict_bash(tmp_path):
    page = (ROOT / "docs" / "workflow_elsewhere.md").read_text("utf-8")
    (command,) = re.findall(r'shell:\n +"(.*)"\n```', page)
    rows = ["run_id,split,selection,epoch,metric,value"]
    for number in range(20_000):  # more than a pipe holds
        for metric, value in (("recall_at_1", number / 20_000), ("loss", 1e-9 * number)):
            split = "test" if metric == "recall_at_1" else "train"
            rows.append(f"glyphs/net/loss{number}/bs32/seed0,{split},last,8,{metric},{value}")
        rows.append(f"glyphs/net/loss{number}/bs32/seed0,test,curve,1,recall_at_1,0.99")
    (tmp_path / "scores.csv").write_text("\n".join(rows) + "\n")
    command = command.format(input="scores.csv", output="best.csv")
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=tmp_path, check=True)
    best = (tmp_path / "best.csv").read_text().splitlines()
    assert [row.split(",")[0].split("/")[2] for row in best] == [
        f"loss{number}" for number in range(19_999, 19_989, -1)
    ]


def anchors(page: Path) -> set[str]:
    """Returns the names by which the headings of a page are linked to."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=place_and_words)
def test_links_lead_to_files_and_sections_that_exist(page):
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = unquote(target).partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


def test_every_page_is_linked_and_the_readme_lists_those_for_users():
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in pages()
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if page.name == "README.md" or "background" not in page.parts
    }
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(pages()) - linked <= {ROOT / "README.md", ROOT / "CONTRIBUTING.md"}
    assert all(f"(docs/{page.name})" in readme for page in (ROOT / "docs").glob("*.md"))


def test_pages_named_in_the_code_exist():
    folders = ["benchmark", "workflow", "slurm", "tests", "snakemake_logger_plugin_runs"]
    found = subprocess.run(
        ["git", "grep", "-ohE", r"docs/[a-z_/]+\.md", "--", *folders, "Makefile", "CHANGELOG.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    named = set(found.stdout.split())
    assert len(named) > 5
    assert [page for page in sorted(named) if not (ROOT / page).is_file()] == []
