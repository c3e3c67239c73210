"""The plan of a study: how many runs there are, what is done, and how long the rest should take."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from benchmark.core.errors import RunError
from benchmark.core.files import write_json
from benchmark.core.records import STATUSES
from benchmark.core.words import first_of, rough_duration
from benchmark.runs.folders import RunStatus, count_by_status, states_of
from benchmark.runs.needs import needs_of
from benchmark.runs.rates import hours_of, rate_of, rates
from benchmark.study import Study
from benchmark.study.grid import LOOKS, Run, at_look, look_state

TROUBLES = ("failed", "stale", "diverged")
SHOWN = 10
States = list[tuple[Run, RunStatus]]


def plan_text(study: Study, results: Path, foreseen: str = "") -> str:
    """Return the plan of ``study`` for a terminal, with at most ``SHOWN`` runs of each trouble.

    Below the lines ``foreseen`` are a table of the blocks, and a table with a row for each dataset,
    setting and batch size.
    """
    states = states_of(study, results)
    rows: dict[tuple[str, str, int], States] = defaultdict(list)
    for run, state in states:
        spec = run.spec
        rows[spec.dataset.label, spec.setting.label, spec.batch_size].append((run, state))
    head = ("dataset", "setting", "batch", "runs", *STATUSES, "time left")
    lines: list[tuple[object, ...]] = [head]
    left = [seconds_left(row) for row in rows.values()]
    for (shape, row), seconds in zip(rows.items(), left, strict=True):
        lines.append((*shape, len(row), *count_by_status(row).values(), rough_duration(seconds)))
    known = [seconds for seconds in left if seconds is not None]
    total = sum(known) if len(known) == len(left) else None
    counts = count_by_status(states).values()
    lines.append(("all", "", "", len(states), *counts, rough_duration(total)))
    summary = f"study {study.name}: {len(states)} runs, {len(runs_to_do(states))} to do"
    if study.trials and study.trials.final_runs:
        summary += f", then {study.trials.final_runs} final runs that they choose"
    if ceiling := _gpu_hours(study, states):
        summary += f"{ceiling} by the resources they ask for"
    text = [summary, *_files(states)]
    if foreseen:
        text.append(foreseen)
    text += [*_blocks(study, states), *_measured_hours(states), "", *_aligned(lines, 2)]
    text += [
        "",
        "time left: of one run after the other, from finished runs of the same row; ? means none "
        "has finished",
    ]
    listed = defaultdict(list)
    for run, state in states:
        if state.status in TROUBLES:
            listed[state.status].append(f"{run.spec.run_id}: {state.reason}")
    for status, runs in listed.items():
        text += ["", f"{status}:"]
        text += [f"  {line}" for line in first_of(runs, SHOWN)]
    return "\n".join(text)


def _aligned(lines: Sequence[Sequence[object]], names: int) -> list[str]:
    """Return the lines of a table: the first ``names`` columns are text, the others numbers."""
    shapes = []
    for number, column in enumerate(zip(*lines, strict=True)):
        width = max(len(str(value)) for value in column)
        side = "<" if number < names else ">"
        shapes.append(f"{{!s:{side}{width}}}")
    shape = "  ".join(shapes)
    return [shape.format(*line).rstrip() for line in lines]


def _files(states: States) -> list[str]:
    """Return which datasets and weights exist, and how many runs wait for the others."""
    runs: Counter[str] = Counter()
    exists: dict[str, bool] = {}
    needs: dict[str, dict[str, bool]] = {}
    ready = 0
    for run in runs_to_do(states):
        key = repr((run.spec.dataset, run.spec.recipe.model))
        if key not in needs:
            needs[key] = needs_of(run.spec)
            exists |= needs[key]
        runs.update(needs[key].keys())
        if all(needs[key].values()):
            ready += 1
    lines = [f"files: {sum(exists.values())} of {len(exists)} there, {ready} runs can start"]
    lines += [f"  {n} runs wait for {name}" for name, n in runs.items() if not exists[name]]
    return lines + [f"  there: {name}" for name in runs if exists[name]]


def _blocks(study: Study, states: States) -> list[str]:
    """Return a table of the GPU-hours and GPU memory of each block; nothing without GPUs.

    The table has the hours that runs ask for and, if there are measured rates, the hours at these.
    """
    rows: list[list[object]] = []
    measured = any(rate_of(run.spec) for run, _ in states)
    asked = {block.name: (block.resources or study.resources).gpu_mem_mb for block in study.blocks}
    for name, memory in asked.items():
        of_block = [(run, state) for run, state in states if name in run.blocks]
        hours = sum(run.resources.gpus * run.resources.minutes / 60 for run, _ in of_block)
        peaks = [state.provenance.memory.peak_gpu_mb for _, state in of_block if state.provenance]
        row = [name, len(of_block), len(runs_to_do(of_block)), f"{hours:,.0f}"]
        if measured:
            at_rates = hours_of(run.spec for run, _ in of_block)
            row.append(f"{at_rates.training + at_rates.evaluation:,.1f}")
        for size in (memory, peaks[0] if peaks else 0):
            row.append(f"{size / 1024:.1f}" if size else "?")
        rows.append(row)
    if not any(run.resources.gpus for run, _ in states):
        return []
    head = ["block", "runs", "to do", "GPU-hours", "GPU memory, GiB", "measured, GiB"]
    if measured:
        head.insert(4, "at rates")
    explained = (
        "GPU-hours and memory: what the runs ask for; at rates: at measured speeds; measured: the "
        "peak memory of a finished run, ? before one has finished"
    )
    return ["", *_aligned([[*head], *rows], 1), explained]


def _measured_hours(states: States) -> list[str]:
    """Return the GPU-hours of the runs to do at measured rates; nothing without GPUs or rates."""
    hours = hours_of(run.spec for run in runs_to_do(states) if run.resources.gpus)
    total = hours.training + hours.evaluation
    if not total:
        return []
    gpus = ", ".join(dict.fromkeys(row.gpu for row in rates()))
    lines = [
        "",
        f"at the measured rates of one {gpus}: about {total:,.1f} GPU-hours to do, "
        f"{hours.evaluation:,.1f} of them evaluations; reading files, whitening and searches are "
        "not counted",
    ]
    if hours.by_tf32:
        lines.append(f"  training.precision: tf32 for float32 would save {hours.by_tf32:,.1f}")
    lines += [f"  guessed from another row, {n} runs: {row}" for row, n in hours.guessed.items()]
    return lines + [f"  not counted, {n} runs: {why}" for why, n in hours.left_out.items()]


def runs_to_do(states: Iterable[tuple[Run, RunStatus]]) -> list[Run]:
    """Return the runs that have no result of the present specification."""
    return [run for run, state in states if not state.result]


def seconds_left(states: States) -> float | None:
    """Return the expected seconds of similar runs to do, on one core each.

    None if runs are to do and no run has finished.
    """
    known = [state.provenance for _, state in states if state.status == "ok"]
    seconds = [source.timing.total_seconds for source in known if source]
    to_do = len(runs_to_do(states))
    if not to_do:
        return 0.0
    return to_do * fmean(seconds) if seconds else None


def _gpu_hours(study: Study, states: States) -> str:
    """Return, as text, the largest GPU-hours of the runs to do and of the final runs after them."""
    runs = runs_to_do(states)
    hours = sum(run.resources.gpus * run.resources.minutes / 60 for run in runs)
    if study.trials and runs:
        hours *= 1 + study.trials.final_runs / len(runs)
    return f", at most {hours:,.0f} GPU-hours" if hours else ""


def sources_text(study: Study) -> str:
    """Return the source of each value in the recipes of a study, recipe by recipe."""
    sources = {block.recipe_name: block.sources for block in study.blocks}
    recipes = []
    for name, given in sources.items():
        lines = [f"  {key}: {source}" for key, source in given.items()] or ["  no sources given"]
        recipes.append("\n".join([f"recipe {name}", *lines]))
    return "\n\n".join(recipes)


def begin_next_look(study: Study, results: Path, *, partial: bool = False) -> str:
    """Write that ``study`` is at its next look, and return a text about the runs of this look.

    Raise RunError if no further look is planned. Raise RunError also if runs of the present look
    have no result, unless ``partial``: the look would not be the planned one.
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
    left = len(runs_to_do(states_of(study, results)))
    if left and not partial:
        raise RunError(
            f"study '{study.name}' is at look {study.look}, and {left} of its runs have no result: "
            f"run it to the end first ('python -m benchmark plan {study.name}' lists them), or go "
            "on without them with --partial"
        )
    folder = study.folder(results)
    begun = look_state(folder)["begun"]
    further = at_look(study, study.look + 1)
    today = datetime.now(UTC).date().isoformat()
    write_json(folder / LOOKS, {"look": further.look, "begun": [*begun, today]})
    states = states_of(further, results)
    return (
        f"study '{study.name}' is at look {further.look} of {len(study.looks)} now "
        f"({listed}): {len(runs_to_do(states))} runs to do{_gpu_hours(further, states)}\n"
        "Until they have ended, verdicts are interim."
    )
