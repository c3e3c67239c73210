"""The plan of a study: how many runs there are, what is done, and how long the rest should take."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from benchmark.core.errors import RunError
from benchmark.core.files import write_json
from benchmark.core.records import STATUSES
from benchmark.runs.folders import status_of
from benchmark.study import Study
from benchmark.study.grid import LOOKS, at_look, expand, look_state

Shape = tuple[str, str, int]  # dataset label, setting, batch size


@dataclass
class Row:
    """One shape of run: numbers by status, and the seconds that its finished runs took."""

    shape: Shape
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """Return the number of runs of this shape."""
        return self.statuses.total()

    @property
    def to_do(self) -> int:
        """Return the number of runs that have no result of the present specification."""
        return self.runs - self.statuses["ok"] - self.statuses["diverged"]

    @property
    def seconds_left(self) -> float | None:
        """Return the expected seconds of the runs to do, on a core each; None: none is finished."""
        if not self.to_do:
            return 0.0
        return self.to_do * fmean(self.seconds) if self.seconds else None


@dataclass(frozen=True)
class Plan:
    """All rows of a study, and the runs without a result by status with their reasons."""

    study: str
    rows: list[Row]
    problems: list[tuple[str, str, str]]  # run_id, status, reason
    gpu_hours: float = 0.0  # that the runs to do may take at most, by the resources they ask for
    later: int = 0  # final runs, which trials choose

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return sum(row.runs for row in self.rows)


def plan(study: Study, results: Path) -> Plan:
    """Return the plan of ``study`` from what lies below ``results``."""
    rows: dict[Shape, Row] = {}
    problems = []
    gpu_hours = 0.0
    for run in expand(study).values():
        state = status_of(run, results)
        shape = (run.spec.dataset.label, run.spec.setting.label, run.spec.batch_size)
        row = rows.setdefault(shape, Row(shape))
        row.statuses[state.status] += 1
        if state.status not in ("ok", "diverged"):
            gpu_hours += run.resources.gpus * run.resources.minutes / 60
        if state.status == "ok" and state.provenance:
            row.seconds.append(state.provenance.timing.total_seconds)
        if state.status in ("failed", "stale", "diverged"):
            problems.append((run.spec.run_id, state.status, state.reason))
    later = study.trials.final_runs if study.trials else 0
    to_do = sum(row.to_do for row in rows.values())
    gpu_hours *= 1 + later / to_do if to_do else 1
    return Plan(study.name, list(rows.values()), problems, gpu_hours, later)


def as_text(found: Plan, shown: int = 10) -> str:
    """Return the plan as a table for a terminal, with at most ``shown`` troubled runs."""
    head = ("dataset", "setting", "batch", "runs", *STATUSES, "time left")
    lines: list[tuple[object, ...]] = [head]
    total: Counter[str] = Counter()
    for row in found.rows:
        total.update(row.statuses)
        counts = (row.statuses[status] for status in STATUSES)
        lines.append((*row.shape, row.runs, *counts, duration(row.seconds_left)))
    known = [row.seconds_left for row in found.rows if row.seconds_left is not None]
    whole = duration(sum(known) if len(known) == len(found.rows) else None)
    lines.append(("all", "", "", found.runs, *(total[status] for status in STATUSES), whole))
    ceiling = (
        f", at most {found.gpu_hours:,.0f} GPU-hours by the resources they ask for"
        if found.gpu_hours
        else ""
    )
    then = f", then {found.later} final runs that they choose" if found.later else ""
    text = [
        f"study {found.study}: {found.runs} runs, {sum(row.to_do for row in found.rows)} to "
        f"do{then}{ceiling}",
        "",
    ]
    widths = [max(len(str(value)) for value in column) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [f"{value:<{width}}" for value, width in zip(line[:2], widths[:2], strict=True)]
        cells += [f"{value:>{width}}" for value, width in zip(line[2:], widths[2:], strict=True)]
        text.append("  ".join(cells).rstrip())
    text += [
        "",
        "time left: of one run after the other, from finished runs of the same row; ? means none "
        "has finished",
    ]
    by_status = defaultdict(list)
    for run_id, status, reason in found.problems:
        by_status[status].append(f"  {run_id}: {reason}")
    for status, listed in by_status.items():
        text += ["", f"{status}:", *listed[:shown]]
        if len(listed) > shown:
            text.append(f"  and {len(listed) - shown} more")
    return "\n".join(text)


def sources_text(study: Study) -> str:
    """Return where each value of the study's recipes comes from, recipe by recipe."""
    sources = {block.recipe_name: block.sources for block in study.blocks}
    parts = []
    for name, given in sources.items():
        lines = [f"  {key}: {source}" for key, source in given.items()] or ["  no sources given"]
        parts.append("\n".join([f"recipe {name}", *lines]))
    return "\n\n".join(parts)


def duration(seconds: float | None) -> str:
    """Return ``3 h 05 min``, ``12 min`` or ``40 s``; ``?`` when unknown."""
    if seconds is None:
        return "?"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def begin_next_look(study: Study, results: Path, *, partial: bool = False) -> str:
    """Write that ``study`` is at its next look, and return in words what is to be run.

    Raise RunError where no further look is planned, or where runs of the present one have no
    result, unless ``partial``: such a look would be another than the one planned.
    """
    listed = "after " + ", ".join(map(str, study.looks)) + " seeds"
    if not study.looks:
        seeds = len(study.seeds)
        raise RunError(
            f"study '{study.name}' plans one look at all {seeds} seeds. Error rates are those of "
            "looks that were planned before the runs: a new study may say 'looks: [3, 5, 10]'"
        )
    if study.look == len(study.looks):
        raise RunError(
            f"study '{study.name}' has taken all looks that it plans ({listed}); what is "
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
    begun, further = look_state(folder)["begun"], at_look(study, study.look + 1)
    today = datetime.now(UTC).date().isoformat()
    write_json(folder / LOOKS, {"look": further.look, "begun": [*begun, today]})
    todo = plan(further, results)
    hours = f", at most {todo.gpu_hours:,.0f} GPU-hours" if todo.gpu_hours else ""
    return (
        f"study '{study.name}' is at look {further.look} of {len(study.looks)} now "
        f"({listed}): {sum(row.to_do for row in todo.rows)} runs to do{hours}\n"
        "Until they have ended, verdicts are interim."
    )
