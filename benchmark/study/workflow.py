"""What the Snakefile needs: the study named by the workflow's configuration, its runs, and their paths."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.core.environment import STUDY
from benchmark.core.errors import BenchmarkError, ConfigError
from benchmark.core.records import RESULTS
from benchmark.study import Study, load_study
from benchmark.study.documents import read_document
from benchmark.study.grid import Run, expand
from benchmark.study.stand_in import stand_in_name

DEFAULT_STUDY = "embedded"
SETTINGS = ("study", "results", "dataset")


@dataclass(frozen=True)
class Flow:
    """A study ready to be run: its runs by id, and where results go."""

    study: Study
    runs: dict[str, Run]
    results: str

    @property
    def folder(self) -> str:
        """Returns the folder of everything derived for the study."""
        return self.study.folder(Path(self.results)).as_posix()

    def files(self, name: str) -> list[str]:
        """Returns the path of file ``name`` of every run."""
        return [f"{self.results}/runs/{run}/{name}" for run in self.runs]

    def command(self, *verb: str) -> list[str]:
        """Returns the command line of a verb that takes the study and the results folder."""
        call = [sys.executable, "-m", "benchmark", *verb]
        return [*call, str(self.study.path), "--results", self.results]

    def attempt(self, *verb: str) -> None:
        """Runs a verb whose failure must not stop the workflow; it says itself what went wrong."""
        done = subprocess.run(self.command(*verb), check=False)
        if done.returncode:
            print(f"'{' '.join(verb)}' ended with status {done.returncode}", file=sys.stderr)


def load_flow(config: Mapping[str, Any], configfiles: Sequence[Any] = ()) -> Flow:
    """Returns the flow of Snakemake's ``config``; raises ConfigError with all problems of the study.

    config          {"study": name or path, "results": folder, "dataset": a stand-in for the study's own}, all
                    optional; or a whole study file, when that was given with --configfile
    configfiles     the paths given with --configfile
    """
    asked = config.get("study", DEFAULT_STUDY)
    if "blocks" in config and configfiles:
        path = Path(str(configfiles[-1]))
        written = read_document(path).data
        changed = [key for key in config if key not in SETTINGS and config[key] != written.get(key)]
        if changed or config.get("study") != written.get("study"):
            words = f"a study cannot be changed with --config ({', '.join(changed) or 'study'})"
            raise ConfigError(str(path), [f"{words}; write another study file instead"])
        asked = path
    else:
        unknown = sorted(set(config) - set(SETTINGS))
        if unknown:
            message = f"unknown setting {', '.join(unknown)}; allowed: {', '.join(SETTINGS)}"
            raise ConfigError("workflow configuration", [message])
    stand_in = config.get("dataset")
    study = load_study(stand_in_name(asked, str(stand_in)) if stand_in else str(asked))
    os.environ[STUDY.name] = study.name
    return Flow(study, expand(study), Path(str(config.get("results", RESULTS))).as_posix())


def load_for_workflow(config: Mapping[str, Any], configfiles: Sequence[Any] = ()) -> Flow:
    """Returns ``load_flow(...)``; ends with the message alone, without a traceback, when the study is wrong."""
    try:
        return load_flow(config, configfiles)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
