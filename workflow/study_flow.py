"""What the rules ask for: the study that their configuration names, its runs, and their paths."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmark.core.documents import read_document
from benchmark.core.environment import STUDY
from benchmark.core.errors import BenchmarkError, ConfigError, RunError, print_error
from benchmark.core.records import FAILED, IMPORTED, RESULTS, Standing
from benchmark.runs.folders import settle
from benchmark.study import Study, load_study
from benchmark.study.data_files import data_files, named_papers
from benchmark.study.grid import Run, expand
from benchmark.study.load import config_folders
from benchmark.study.model import name_on
from benchmark.study.trials import FILE as SELECTION
from benchmark.study.trials import is_current, selected_path
from snakemake_logger_plugin_runs.inside import Inside

PATIENCE = 60.0  # seconds for Slurm's answer

DEFAULT_STUDY = "embedded"
SETTINGS = ("study", "results", "dataset")
TABLES = ("runs.csv", "scores.csv")
# What 'build' makes below a study's folder, beside its page, tables and figures.
FILES = (
    *("verdicts.csv", "verdicts_other.csv", "claims.csv", "claims_parts.csv"),
    FAILED,
)
FOLDERS = ("stats", "gallery")
# What a dry run plans in place of old files, which keep their names, and nobody makes.
NEW_SPEC = "new_spec.json"
NEW_RESULT = "new_result.json"
NOTHING = "nothing (the run is finished: delete its result.json to train it again)"


@dataclass(frozen=True)
class Flow:
    """A study ready to be run: its runs by id, and the folder of the results.

    ``runs`` of a study with rules are its trials. Everything behind them is made of the final runs,
    whose study file ``selected`` is there once the checkpoint ``select`` has written it; a study
    without rules has none. With ``changes_nothing`` files of outdated runs keep their names.
    """

    study: Study
    runs: dict[str, Run]
    results: str
    changes_nothing: bool
    selected: Path | None
    _standings: dict[str, Standing] = field(default_factory=dict)

    @property
    def is_chosen(self) -> bool:
        """Whether there is a study file of final runs."""
        return self.selected is not None and self.selected.is_file()

    @property
    def final_runs(self) -> dict[str, Run]:
        """The final runs that trials have chosen; none before they are known."""
        if self.selected is None or not self.is_chosen:
            return {}
        return _final_runs(self.selected, self.selected.stat().st_mtime_ns)

    @property
    def folder(self) -> str:
        """The folder of everything derived for the study, or for its final runs."""
        name = self.selected.stem if self.selected else self.study.name
        return (Path(self.results) / name).as_posix()

    def asked_in(self, results: str | Path) -> str:
        """Return the arguments of verbs for a shell: the study as it is asked for, and results."""
        path = self.study.path
        study = path.as_posix()
        if path.parent.resolve() in [folder.resolve() for folder in config_folders()]:
            study = path.stem
        return shlex.join([study, "--results", str(results)])

    def arguments_in(self, results: str | Path) -> str:
        """Return the same arguments for the final runs, if the study has any."""
        if self.selected is None:
            return self.asked_in(results)
        return shlex.join([self.selected.as_posix(), "--results", str(results)])

    @property
    def arguments(self) -> str:
        """The arguments of verbs: the study, or its study of final runs, and the results folder."""
        return self.arguments_in(self.results)

    @property
    def imported(self) -> list[str]:
        """The arguments of each study whose runs go to MLflow."""
        studies = [self.asked_in(self.results)]
        if self.is_chosen:
            studies.append(self.arguments)
        return studies

    @property
    def unknown(self) -> int:
        """The number of final runs while it is not known which they are."""
        trials = self.study.trials
        if trials is None or is_current(self.study, Path(self.results)):
            return 0
        return trials.final_runs

    @property
    def later(self) -> int:
        """The number of unknown final runs to train, but for those that are finished."""
        finished = [run for run in self.final_runs if self.standing(run) == "finished"]
        return max(0, self.unknown - len(finished))

    @property
    def count(self) -> int:
        """The number of runs, those that are not known yet included."""
        return len(self.runs) + (self.unknown or len(self.final_runs))

    @property
    def reported(self) -> Study:
        """The study that the last words are about: of the final runs, once they are known."""
        return load_study(self.selected) if self.selected and self.is_chosen else self.study

    def run(self, run_id: str) -> Run:
        """Return one run."""
        return self.runs.get(run_id) or self.final_runs[run_id]

    def standing(self, run_id: str) -> Standing:
        """Return how a run stood when this was first asked: a job of this call finishes it."""
        run = self.run(run_id)
        if run.digest not in self._standings:
            self._standings[run.digest] = settle(
                run, Path(self.results), dry_run=self.changes_nothing
            )
        return self._standings[run.digest]

    def settle_all(self, warn: Callable[[str], object]) -> None:
        """Settle every run that is known; say how many a dry run finds outdated."""
        outdated = [self.standing(run) for run in (*self.runs, *self.final_runs)].count("outdated")
        if outdated:
            warn(f"{outdated} runs are outdated, and will be trained again")

    def reason_to_train(self, inside: Inside, wildcards: Any) -> list[str]:
        """Return what training asks for, beside its specification.

        A finished run asks for a file that nobody makes: Snakemake then takes the result as it is,
        and has no job that could delete it. An outdated one asks for a new specification. A job
        that a cluster starts again when its run has finished ends before its outputs are deleted.
        """
        if inside.is_main:
            names = {"finished": [NOTHING], "outdated": [NEW_SPEC], "to do": []}
            asked = names[self.standing(wildcards.run)]
            return [f"{self.results}/runs/{wildcards.run}/{name}" for name in asked]
        runs = inside.runs_of_job()
        if runs and all(self.standing(run) == "finished" for run in runs):
            sys.exit()
        return []

    def files(self, name: str) -> list[str]:
        """Return the path of file ``name`` of every run that the report is made of."""
        runs = self.final_runs if self.study.trials else self.runs
        return self.paths(runs, name)

    def paths(self, runs: Collection[str], name: str) -> list[str]:
        """Return the path of file ``name`` of these runs.

        Of finished runs, those that are not there are left out. An outdated run is asked for
        ``NEW_RESULT``: its files count as missing.
        """
        paths = []
        for run in runs:
            standing = self.standing(run)
            asked = NEW_RESULT if standing == "outdated" else name
            path = f"{self.results}/runs/{run}/{asked}"
            if standing != "finished" or os.path.exists(path):
                paths.append(path)
        return paths

    def data(self, step: str, papers: Collection[str] | None = None) -> list[str]:
        """Return the data files that a step reads of ``papers`` (keys; default: of the study)."""
        named = named_papers(self.study.references.published) if papers is None else papers
        return [path.as_posix() for path in data_files(step, named)]

    @property
    def tables_of_trials(self) -> list[str]:
        """The tables of the trials that chose the study's settings."""
        trials = self.study.name if self.study.trials else self.study.references.trials
        return [f"{self.results}/{trials}/{name}" for name in TABLES if trials]

    @property
    def frozen(self) -> list[str]:
        """The file of the study's frozen runs, once there is one."""
        path = self.study.references.frozen
        return [path] if path and Path(path).is_file() else []

    def forget_failures(self) -> None:
        """Remove what says that a step failed, and a selection that follows from other trials."""
        for name, says_failed in ((IMPORTED, False), (FAILED, True)):
            path = Path(self.folder, name)
            if path.is_file() and bool(path.stat().st_size) == says_failed:
                path.unlink()
        if self.selected and self.is_chosen and not is_current(self.study, Path(self.results)):
            (self.selected.parent / SELECTION).unlink(missing_ok=True)

    def analysed(self, without: Sequence[str] = ()) -> list[str]:
        """Return the analyses below the study's folder, each with a digest of its files."""
        analyses = []
        for folder in sorted(Path(self.folder).glob("analyses/*/")):
            digest = hashlib.sha256()
            for path in sorted(path for path in folder.iterdir() if path.is_file()):
                digest.update(os.fsencode(path.name) + b"\0" + path.read_bytes())
            if (folder / "summary.json").exists() and folder.name not in without:
                analyses.append(f"{folder.name} {digest.hexdigest()[:16]}")
        return analyses

    def attempt(self, *verb: str) -> None:
        """Run a verb whose failure must not stop the workflow; show its errors alone.

        Verbs about final runs wait until these are known.
        """
        if verb[0] == "track":
            asked = self.imported
        else:
            asked = [self.arguments] if self.selected is None or self.is_chosen else []
        for arguments in asked:
            command = [sys.executable, "-P", "-m", "benchmark", *verb, *shlex.split(arguments)]
            done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
            if done.returncode:
                print(f"'{' '.join(verb)}' ended with status {done.returncode}", file=sys.stderr)


@cache
def _final_runs(path: Path, _: int) -> dict[str, Run]:
    return expand(load_study(path))


def load_flow(
    config: Mapping[str, Any], configfiles: Sequence[Any] = (), changes_nothing: bool = True
) -> Flow:
    """Return the flow of Snakemake's ``config``; raise ConfigError with all its problems.

    config           {"study": name or path, "results": folder, "dataset": another that the study's
                     rules allow}, all optional; or a whole study file, given with --configfile
    configfiles      the paths given with --configfile
    changes_nothing  whether files of outdated runs keep their names
    """
    own_file = "blocks" in config and bool(configfiles)
    unknown = ", ".join(sorted(map(str, set(config) - set(SETTINGS))))
    elsewhere = "seeds, losses and all others stand in the study's file (docs/studies.md)"
    problems = _misread(config)
    if unknown and not own_file:
        allowed = ", ".join(SETTINGS)
        problems.insert(0, f"unknown setting {unknown}; allowed: {allowed}; {elsewhere}")
    if problems:
        raise ConfigError("workflow configuration", problems)
    asked = config.get("study", DEFAULT_STUDY)
    if own_file:  # which --config must not change
        path = Path(str(configfiles[-1]))
        written = read_document(path).data
        changed = [str(key) for key in config if config[key] != written.get(key)]
        changed = [key for key in changed if key not in SETTINGS]
        if changed or asked != written.get("study"):
            message = f"a study cannot be changed with --config ({', '.join(changed) or 'study'})"
            raise ConfigError(str(path), [f"{message}; write another study file instead"])
        asked = str(path)
    if dataset := config.get("dataset"):
        asked = name_on(asked, dataset)
    results = Path(config.get("results", RESULTS))
    study = load_study(asked, results)
    os.environ[STUDY] = study.name
    selected = selected_path(study, results) if study.trials else None
    return Flow(study, expand(study), results.as_posix(), changes_nothing, selected)


def _misread(config: Mapping[str, Any]) -> list[str]:
    """Return the problems of the values of settings."""
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
            problems.append(f"results={value} is a URL; name a folder on this machine")
        elif key == "results" and Path(value).is_file():
            problems.append(f"results={value} is a file; choose another place")
    return problems


def check_executor(name: str) -> None:
    """Raise RunError where jobs cannot be handed to this executor of Snakemake's."""
    if name != "slurm":
        return
    local = "or use --profile workflow/profiles/local"
    if shutil.which("sbatch") is None:
        raise RunError(f"no Slurm here (sbatch not found): load its module, {local}")
    try:
        subprocess.run(["sinfo"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        answer = str(error)
    except subprocess.CalledProcessError as error:
        answer = error.stderr.strip() or str(error)
    else:
        return
    raise RunError(
        f"Slurm does not answer (sinfo: {answer.splitlines()[-1]}): wait for it, {local}"
    )


def or_end(load: Callable[[], Any], say: Callable[[str], object] | None = None) -> Any:
    """Return ``load()``; end the program with the message alone when something is wrong.

    ``say`` is a log that still has lines to print, which come first.
    """
    try:
        return load()
    except BenchmarkError as error:
        if say is None:
            sys.exit(print_error(error))
        say(f"error: {error}")
        sys.exit(2)
