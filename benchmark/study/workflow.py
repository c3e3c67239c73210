"""What the Snakefile needs: the study that its configuration names, its runs, and their paths."""

import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import not_
from pathlib import Path
from typing import Any, TypeVar

from benchmark.core.environment import STUDY
from benchmark.core.errors import BenchmarkError, ConfigError, print_error
from benchmark.core.records import RESULT, RESULTS
from benchmark.study import Study, load_study
from benchmark.study.data_files import data_files, named_papers
from benchmark.study.documents import name_on, read_document
from benchmark.study.grid import Run, expand
from benchmark.study.load import config_folders
from benchmark.study.trials import FILE as SELECTION
from benchmark.study.trials import is_current, selected_path

T = TypeVar("T")

DEFAULT_STUDY = "embedded"
SETTINGS = ("study", "results", "dataset")
TABLES = ("runs.csv", "scores.csv")
# What 'build' makes below a study's folder. The second names what it could not make.
PAGE, FAILED = "report/index.html", "report/failed.txt"
FILES = (
    *("verdicts.csv", "verdicts_other.csv", "claims.csv", "claims_parts.csv"),
    *(f"papers/{name}.json" for name in ("tables", "figures", "sweeps")),
    *(PAGE, FAILED),
)
FOLDERS = ("stats", "tables", "figures", "gallery")
IMPORTED = "imported.txt"


@dataclass(frozen=True)
class Flow:
    """A study ready to be run: its runs by id, and where results go."""

    study: Study
    runs: dict[str, Run]
    results: str

    @property
    def folder(self) -> str:
        """Return the folder of everything derived for the study."""
        return self.study.folder(Path(self.results)).as_posix()

    @property
    def arguments(self) -> str:
        """Return the arguments that verbs take, for a shell: the study and the results folder."""
        return self.arguments_in(self.results)

    def arguments_in(self, results: str | Path) -> str:
        """Return the same for another results folder."""
        return shlex.join([self._name, "--results", str(results)])

    @property
    def _name(self) -> str:
        path = self.study.path
        by_name = any(path.parent.resolve() == folder.resolve() for folder in config_folders())
        return path.stem if by_name else path.as_posix()

    @property
    def imported(self) -> list[str]:
        """Return the arguments of each study whose runs go to MLflow."""
        return [self.arguments]

    @property
    def count(self) -> int:
        """The number of runs, those that are not known yet included."""
        return len(self.runs) + self.later

    @property
    def later(self) -> int:
        """The number of runs that are known only once others have finished."""
        return 0

    @property
    def reported(self) -> Study:
        """The study that the last words are about."""
        return self.study

    @property
    def final_runs(self) -> dict[str, Run]:
        """The runs that follow from trials."""
        return {}

    def run(self, run_id: str) -> Run:
        """Return one run."""
        return self.runs[run_id]

    def files(self, name: str) -> list[str]:
        """Return the path of file ``name`` of every run that the report is made of."""
        return self.paths(self.runs, name)

    def paths(self, runs: Collection[str], name: str) -> list[str]:
        """Return the path of file ``name`` of these runs.

        Runs that were finished before training wrote such a file are left out.
        """
        folders = [f"{self.results}/runs/{run}" for run in runs]
        return [
            f"{folder}/{name}"
            for folder in folders
            if not os.path.exists(f"{folder}/{RESULT}") or os.path.exists(f"{folder}/{name}")
        ]

    @cached_property
    def papers(self) -> set[str]:
        """The keys of the papers that the study names."""
        return named_papers(self.study.references.published)

    def data(self, step: str, papers: Collection[str] | None = None) -> list[str]:
        """Return the data files that a step reads of ``papers`` (keys), or those of the study."""
        named = self.papers if papers is None else papers
        return [path.as_posix() for path in data_files(step, named)]

    @property
    def tables_of_trials(self) -> list[str]:
        """Return the tables of the trials that chose the study's settings."""
        trials = self.study.name if self.study.trials else self.study.references.trials
        return [f"{self.results}/{trials}/{name}" for name in TABLES if trials]

    def settle(self) -> None:
        """Remove what says that a step failed, so that it is made again."""
        for name, good in ((IMPORTED, bool), (FAILED, not_)):
            path = Path(self.folder, name)
            if path.is_file() and not good(path.stat().st_size):
                path.unlink()

    @property
    def frozen(self) -> list[str]:
        """Return the file of the study's frozen runs, once there is one."""
        path = self.study.references.frozen
        return [path] if path and Path(path).is_file() else []

    def analysed(self, without: Sequence[str] = ()) -> list[str]:
        """Return the analyses below the study's folder, each with a digest of its files."""
        summaries = sorted(Path(self.folder).glob("analyses/*/summary.json"))
        folders = [path.parent for path in summaries if path.parent.name not in without]
        return [f"{folder.name} {_content(folder)}" for folder in folders]

    def attempt(self, *verb: str) -> None:
        """Run a verb whose failure must not stop the workflow; show its errors alone."""
        for arguments in self.imported if verb[0] == "track" else [self.arguments]:
            self._attempt(verb, arguments)

    def _attempt(self, verb: Sequence[str], arguments: str) -> None:
        command = [sys.executable, "-m", "benchmark", *verb, *shlex.split(arguments)]
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        if done.returncode:
            print(f"'{' '.join(verb)}' ended with status {done.returncode}", file=sys.stderr)


class TrialsFlow(Flow):
    """A study with rules: its trials first, then the final runs that follow from their results.

    ``runs`` are the trials. Everything behind them is made of the final runs, whose study file is
    there once the checkpoint ``select`` has written it.
    """

    @property
    def selected(self) -> Path:
        """The study file of the final runs."""
        return selected_path(self.study, Path(self.results))

    @property
    def is_current(self) -> bool:
        """Whether the study of the final runs follows from the trials as they are asked for."""
        return is_current(self.study, Path(self.results))

    @property
    def folder(self) -> str:
        """Return the folder of everything derived for the final runs."""
        return (Path(self.results) / self.selected.stem).as_posix()

    def asked_in(self, results: str | Path) -> str:
        """Return the arguments of verbs that are about the trials."""
        return super().arguments_in(results)

    def arguments_in(self, results: str | Path) -> str:
        """Return the arguments of verbs that are about the final runs."""
        return shlex.join([self.selected.as_posix(), "--results", str(results)])

    def settle(self) -> None:
        """Do as ``Flow`` does; remove a selection that does not follow from the trials."""
        super().settle()
        if self.selected.is_file() and not self.is_current:
            (self.selected.parent / SELECTION).unlink(missing_ok=True)

    @property
    def imported(self) -> list[str]:
        """Return the arguments of the trials, and of the final runs once they are known."""
        return [self.asked_in(self.results), self.arguments][: 1 + self.selected.is_file()]

    @property
    def count(self) -> int:
        """The number of trials and final runs."""
        return len(self.runs) + (len(self.final_runs) if self.is_current else self._planned)

    @property
    def later(self) -> int:
        """The number of final runs to train while it is not known which they are."""
        if self.is_current:
            return 0
        folders = (Path(self.results, run.spec.folder) for run in self.final_runs.values())
        return max(0, self._planned - sum((folder / RESULT).is_file() for folder in folders))

    @property
    def _planned(self) -> int:
        assert self.study.trials is not None
        return self.study.trials.final_runs

    @property
    def reported(self) -> Study:
        """The study of the final runs; before they are known, that of the trials."""
        return load_study(self.selected) if self.selected.is_file() else self.study

    @property
    def final_runs(self) -> dict[str, Run]:
        """The final runs; none before they are known."""
        if not self.selected.is_file():
            return {}
        return _final_runs(self.selected, self.selected.stat().st_mtime_ns)

    def run(self, run_id: str) -> Run:
        """Return a trial or a final run."""
        return self.runs.get(run_id) or self.final_runs[run_id]

    def files(self, name: str) -> list[str]:
        """Return the path of file ``name`` of every final run."""
        return self.paths(self.final_runs, name)

    def attempt(self, *verb: str) -> None:
        """Do as ``Flow`` does, but for the final runs only once they are known."""
        if verb[0] == "track" or self.selected.is_file():
            super().attempt(*verb)


@cache
def _final_runs(path: Path, _: int) -> dict[str, Run]:
    return expand(load_study(path))


def _content(folder: Path) -> str:
    """Return a digest of the files that lie in a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(os.fsencode(path.name) + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def load_flow(config: Mapping[str, Any], configfiles: Sequence[Any] = ()) -> Flow:
    """Return the flow of Snakemake's ``config``; raise ConfigError with all problems of the study.

    config          {"study": name or path, "results": folder, "dataset": another that the study's
                    rules allow}, all optional; or a whole study file, given with --configfile
    configfiles     the paths given with --configfile
    """
    own_file = "blocks" in config and bool(configfiles)
    if problems := [*([] if own_file else _unknown(config)), *_misread(config)]:
        raise ConfigError("workflow configuration", problems)
    asked = config.get("study", DEFAULT_STUDY)
    if own_file:
        asked = _unchanged(config, Path(str(configfiles[-1])))
    if dataset := config.get("dataset"):
        asked = name_on(asked, dataset)
    results = Path(config.get("results", RESULTS))
    study = load_study(asked, results)
    os.environ[STUDY.name] = study.name
    kind = Flow if study.trials is None else TrialsFlow
    return kind(study, expand(study), results.as_posix())


def _unchanged(config: Mapping[str, Any], path: Path) -> str:
    """Return the path of a study given with --configfile; --config must not change it."""
    written = read_document(path).data
    changed = [key for key in config if key not in SETTINGS and config[key] != written.get(key)]
    if changed or config.get("study") != written.get("study"):
        words = (
            f"a study cannot be changed with --config ({', '.join(map(str, changed)) or 'study'})"
        )
        raise ConfigError(str(path), [f"{words}; write another study file instead"])
    return str(path)


def _unknown(config: Mapping[str, Any]) -> list[str]:
    unknown = ", ".join(sorted(map(str, set(config) - set(SETTINGS))))
    return [f"unknown setting {unknown}; allowed: {', '.join(SETTINGS)}"] if unknown else []


def _misread(config: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the values of settings."""
    problems = []
    for key in SETTINGS:
        value = config.get(key, "")
        if not isinstance(value, str):  # Snakemake has read 1.10 as 1.1: what was typed is lost
            problems.append(
                f"{key} was read as the {type(value).__name__} {value!r}, not as a name; "
                f"write {key}=./NAME, or use 'python -m benchmark run'"
            )
        elif set(value) & set("{}"):
            problems.append(f"{key}={value} has braces, which Snakemake takes for wildcards")
        elif key == "results" and "://" in value:
            problems.append(f"results={value} is an address; name a folder of this machine")
        elif key == "results" and Path(value).is_file():
            problems.append(f"results={value} is a file; choose another place")
    return problems


def or_end(load: Callable[[], T]) -> T:
    """Return ``load()``; end the program with the message alone when something is wrong."""
    try:
        return load()
    except BenchmarkError as error:
        sys.exit(print_error(error))
