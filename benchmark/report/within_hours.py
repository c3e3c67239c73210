"""What ``plan --within`` says and writes: the answer, its runs as a study, and the curve."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd

from benchmark.claims.weekend import Weekend, expected
from benchmark.core.files import write_text
from benchmark.report.drawing import SERIES, SINGLE, Drawing, legend_below, line, new_figure, styled
from benchmark.study.part import part_of, study_text

NOTE = """
Expected is the sum of the chances of right verdicts, by the true difference in points: of a
number from the print, of the parts of a claim from the edge or the middle of what it says. The
last row chooses the runs (--true). Chosen by: at the families and spreads of the whole study.
Alone: of the chosen runs as a study of their own. Hours: at measured rates, or what runs ask for.
"""


def curve_of(plan: Weekend) -> pd.DataFrame:
    """Return the expected number of each kind by hours (index), for the chosen runs alone."""
    rows = {}
    for hours, seeds in plan.chosen.items():
        rows[hours] = expected(plan.alone(hours), seeds, plan.true)
    return pd.DataFrame(rows, index=[*plan.totals]).fillna(0.0).T.rename_axis("hours")


def as_text(plan: Weekend, within: float, curve: pd.DataFrame) -> str:
    """Return the answer, the worlds, the chosen runs and what is dropped, for a terminal."""
    seeds = plan.chosen[within]
    now = [f"{curve[kind][within]:.1f} of {n} {kind}" for kind, n in plan.totals.items()]
    more = [f"{curve[kind][1.5 * within]:.1f} {kind}" for kind in plan.totals]
    shares = ", ".join(f"{share:.0%} {points:g}" for points, share in plan.true.items())
    ways = {
        "chosen by": (plan.items, seeds),
        "alone": (plan.alone(within), seeds),
        "all runs": (plan.items, {cell: len(hours) for cell, hours in plan.hours.items()}),
    }
    rows = {}
    for name, world in {"none": {0.0: 1.0}, "3 points": {3.0: 1.0}, shares: plan.true}.items():
        for way, decided in ways.items():
            rows[name, way] = expected(*decided, world)
    worlds = pd.DataFrame(rows, index=[*plan.totals]).fillna(0.0).round(1).T
    hours = {cell: plan.hours[cell][n - 1] for cell, n in seeds.items()}
    chosen = pd.DataFrame({"seeds": seeds, "hours": hours}).round(1)
    dropped = [str(cell) for cell in plan.hours if cell not in seeds]
    return "\n".join(
        [
            f"{within:g} hours: {' and '.join(now)} are expected to be decided; "
            f"{within / 2:g} hours more: {' and '.join(more)}",
            f"another choice gains at most {plan.bound:.2f} more, by the whole study",
            f"\n{worlds.to_string()}\n{NOTE}\n{chosen.to_string()}",
            f"\ndropped, {len(dropped)} cells: {', '.join(dropped)}",
        ]
    )


def write_runs(plan: Weekend, within: float, path: Path) -> str:
    """Write the chosen runs as a study; return why it has these runs."""
    seeds = plan.chosen[within]
    left = Counter(item.kind for item in plan.items if not item.cells <= seeds.keys())
    listed = " and ".join(f"{left[kind]} of {n} {kind}" for kind, n in plan.totals.items())
    why = f"Chosen by plan --within {within:g}h of {plan.study.name}, which leaves out {listed}."
    part = part_of(plan.study, seeds)
    write_text(path, study_text(replace(part, name=path.stem, question=f"{part.question} {why}")))
    return why


def draw_curve(curve: pd.DataFrame, why: str) -> Drawing:
    """Return the figure of ``curve_of``."""
    with styled():
        figure, ((axes,),) = new_figure(SINGLE, 2.4)
        for kind, style in zip(curve, SERIES, strict=False):
            axes.plot(curve.index, curve[kind], **line(style), label=kind)
        axes.set_xscale("log")
        axes.set_xticks(curve.index, [f"{hours:g}" for hours in curve.index])
        axes.minorticks_off()
        axes.set_xlabel("hours")
        axes.set_ylabel("expected to be decided")
        legend_below(figure)
    ends = curve.iloc[[0, -1]].round(1).to_dict("index")
    return Drawing(why, f"Rising lines over hours: {ends}.", figure, curve.reset_index())
