"""Going on to the next planned look of a study, once every run of the present one has ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmark.core.errors import RunError
from benchmark.runs.plan import plan
from benchmark.study import Study
from benchmark.study.looks import LookState, at_look


def begin_next_look(study: Study, results: Path, *, partial: bool = False) -> str:
    """Write that ``study`` is at its next look, and return in words what is to be run.

    Raise RunError where no further look is planned, or where runs of the present one have no
    result, unless ``partial``: such a look would be another than the one planned.
    """
    if not study.looks:
        seeds = len(study.seeds)
        raise RunError(
            f"study '{study.name}' plans one look at all {seeds} seeds. Error rates hold for looks "
            "that were planned before the runs: a new study may say 'looks: [3, 5, 10]'"
        )
    if study.look == len(study.looks):
        raise RunError(
            f"study '{study.name}' has taken all looks that it plans ({_listed(study)}); what is "
            "inconclusive now stays so, since further looks are not covered by its error rates"
        )
    left = sum(row.to_do for row in plan(study, results).rows)
    if left and not partial:
        raise RunError(
            f"study '{study.name}' is at look {study.look}, and {left} of its runs have no result: "
            f"run it to the end first ('python -m benchmark plan {study.name}' lists them), or go "
            "on without them with --partial"
        )
    folder = study.folder(results)
    state, further = LookState.read(folder), at_look(study, study.look + 1)
    today = datetime.now(UTC).date().isoformat()
    replace(state, look=further.look, begun=(*state.begun, today)).write(folder)
    todo = plan(further, results)
    hours = f", at most {todo.gpu_hours:,.0f} GPU-hours" if todo.gpu_hours else ""
    return (
        f"study '{study.name}' is at look {further.look} of {len(study.looks)} now "
        f"({_listed(study)}): {sum(row.to_do for row in todo.rows)} runs to do{hours}\n"
        "Until they have ended, verdicts are interim."
    )


def _listed(study: Study) -> str:
    return "after " + ", ".join(map(str, study.looks)) + " seeds"
