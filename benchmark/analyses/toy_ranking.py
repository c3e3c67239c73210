"""The toy ranking of ROADMAP: what each smooth rank does with two positives below a confident negative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Claim, judged
from benchmark.analyses.context import Context
from benchmark.analyses.exact_ap import average_precision
from benchmark.analyses.shown import number, numeric
from benchmark.core.seeding import derive
from benchmark.report.figures.drawing import Drawing, new_figure
from benchmark.report.figures.style import DOUBLE, FAINT, INK, LOOKS, styled
from benchmark.report.tables.table import Cell, Section, Table, text_column

# ROADMAP v2, supplement A.1: s3 - s2 = 0.13 and s3 - s1 = 0.14; only differences matter
SCORES = {"x1": 0.66, "x2": 0.67, "x3": 0.80}
POSITIVE = np.array([True, True, False])
STEPPED = "SmoothAP, true step for positives"
VANISHED = 1e-9  # change of the loss per unit of cosine
DRAWS = 2000


def toy_losses() -> dict[str, Any]:
    """Returns {name: loss}: SmoothAP, SmoothAP with a true step in rank+, and SupAP, at the papers' tau = 0.01."""
    from benchmark.losses import create_loss

    # without start, and with a linear part that no cosine reaches, SupAP's H- is the plain sigmoid
    stepped = create_loss("sup_ap", start=0.0, delta=10.0)
    return {"SmoothAP": create_loss("smooth_ap"), STEPPED: stepped, "SupAP": create_loss("sup_ap")}


def value_and_gradient(
    loss: Any, scores: np.ndarray, positive: np.ndarray
) -> tuple[float, np.ndarray]:
    """Returns 1 - AP of one query in the loss's relaxation and its derivative by the scores (R,)."""
    import torch

    row = torch.tensor(scores[None], dtype=torch.float64, requires_grad=True)
    value = loss.query_losses(row, torch.tensor(positive[None]))[0]
    value.backward()
    return value.item(), row.grad[0].numpy()


def random_rankings(count: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns ``count`` rankings (scores, positive) of 1 to 5 positives among 1 to 20 negatives, near and far apart."""
    rng = np.random.default_rng(derive(seed, "random rankings"))
    found = []
    for _ in range(count):
        positives, negatives = rng.integers(1, 6), rng.integers(1, 21)
        scores = np.clip(
            rng.normal(0.5, rng.choice([0.01, 0.05, 0.2]), positives + negatives), -1, 1
        )
        found.append((scores, np.arange(len(scores)) < positives))
    return found


def properties(loss: Any, rankings: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Returns over many rankings: the share with a loss below the AP loss, the share of misranked negatives
    without gradient, and the smallest gradient of a misranked negative."""
    below, gradients = 0, []
    for scores, positive in rankings:
        value, gradient = value_and_gradient(loss, scores, positive)
        below += value < 1 - average_precision(scores[positive], scores[~positive]) - 1e-12
        misranked = ~positive & (scores > scores[positive].min())
        gradients.extend(gradient[misranked])
    smallest = np.array(gradients)
    return {
        "below": below / len(rankings),
        "vanished": float(np.mean(smallest < VANISHED)),
        "smallest": float(smallest.min()),
    }


@ANALYSES.register(
    "toy_ranking",
    display="Toy ranking: values and gradients",
    places=(
        "ROADMAP Fig. 1(a)",
        "ROADMAP v1 Fig. 7 and 8, v2 Fig. 8 and 9",
        "ROADMAP v2 supplement A.1",
    ),
    trains=False,
)
def build(context: Context) -> Analysis:
    """Returns the gradients on the toy ranking, and how often the losses' properties hold on random rankings."""
    scores = np.array(list(SCORES.values()))
    exact = 1 - average_precision(scores[POSITIVE], scores[~POSITIVE])
    rankings = random_rankings(200 if context.quick else DRAWS)
    found, rows = {}, []
    for name, loss in toy_losses().items():
        value, gradient = value_and_gradient(loss, scores, POSITIVE)
        found[name] = {"value": value, "gradient": gradient, **properties(loss, rankings)}
        for point, score, slope in zip(SCORES, scores, gradient, strict=True):
            rows.append(
                {"loss": name, "point": point, "score": score, "gradient": slope, "value": value}
            )
    claims = _claims(found, exact, len(rankings))
    data = pd.DataFrame(rows).assign(ap_loss=exact)
    return Analysis(_draw(found, exact, data), _table(found, exact, len(rankings)), claims)


def _claims(found: dict[str, dict], exact: float, draws: int) -> list[Claim]:
    place = "ROADMAP v1 Fig. 7, v2 Fig. 8"
    smooth, stepped, sup = found["SmoothAP"], found[STEPPED], found["SupAP"]
    first, second, third = smooth["gradient"]
    opposite = first * second < 0 and abs(first + second) < 0.01 * abs(first)
    fixed = np.abs(stepped["gradient"]).max() < 0.01 * abs(first)
    right = (np.sign(sup["gradient"]) == [-1, -1, 1]).all()
    return [
        Claim(
            "opposite_gradients",
            place,
            "SmoothAP gives the two positives opposite gradients",
            f"SmoothAP's gradients on the two positives are {first:.3g} and {second:.3g}.",
            judged(bool(opposite)),
        ),
        Claim(
            "vanishing_gradient",
            place,
            "SmoothAP gives the misranked negative no gradient",
            f"SmoothAP's gradient on the negative is {third:.1e}, against {abs(first):.3g} on a positive; over {draws} "
            f"random rankings {100 * smooth['vanished']:.0f}% of the misranked negatives get less than {VANISHED:g}.",
            judged(bool(third < 0.01 * abs(first))),
        ),
        Claim(
            "no_upper_bound",
            place,
            "SmoothAP can be lower than the AP loss",
            f"SmoothAP is {smooth['value']:.4f} where the AP loss is {exact:.4f}, and it is lower in "
            f"{100 * smooth['below']:.0f}% of the random rankings.",
            judged(bool(smooth["value"] < exact and smooth["below"] > 0)),
        ),
        Claim(
            "true_step",
            "ROADMAP v1 Fig. 8(a), v2 Fig. 9(a)",
            "a true step for positives ends the contradiction, but gradients still vanish",
            f"With a true step for positives the largest gradient is {np.abs(stepped['gradient']).max():.1e}.",
            judged(bool(fixed)),
        ),
        Claim(
            "sup_ap_directions",
            "ROADMAP v1 Fig. 8(b), v2 Fig. 9(b)",
            "SupAP raises both positives and lowers the negative",
            "SupAP's gradients are {:.3g}, {:.3g} and {:+.3g}.".format(*sup["gradient"]),
            judged(bool(right)),
        ),
        Claim(
            "upper_bound",
            "ROADMAP Sec. 3.1, property 1",
            "SupAP is never below the AP loss",
            f"SupAP is {sup['value']:.4f} against an AP loss of {exact:.4f}, and below it in {100 * sup['below']:.3g}% "
            f"of {draws} random rankings.",
            judged(sup["below"] == 0 and sup["value"] >= exact),
        ),
        Claim(
            "gradient_until_right",
            "ROADMAP Sec. 3.1, property 2",
            "SupAP's gradient on a misranked negative never vanishes",
            f"SupAP's smallest gradient on a misranked negative of the random rankings is {sup['smallest']:.1e}.",
            judged(sup["smallest"] > 0 and sup["vanished"] == 0),
        ),
    ]


def _table(found: dict[str, dict], exact: float, draws: int) -> Table:
    columns = [text_column("loss"), numeric("value"), numeric("AP loss")]
    columns += [numeric("gradient", point) for point in SCORES]
    columns += [
        numeric(f"{draws} random rankings", name)
        for name in ("share below AP loss", "share vanished")
    ]
    columns += [numeric(f"{draws} random rankings", "smallest gradient")]
    rows = [
        [
            Cell(name),
            *(number(value, 4) for value in (item["value"], exact, *item["gradient"])),
            *(number(item[key]) for key in ("below", "vanished", "smallest")),
        ]
        for name, item in found.items()
    ]
    caption = (
        f"Two positives x1, x2 and a negative x3 with scores {', '.join(f'{score:.2f}' for score in SCORES.values())}: "
        "loss, AP loss, and derivative of the loss by each score. Random rankings: how often the loss is below the AP "
        f"loss, and gradients of misranked negatives (vanished: below {VANISHED:g} per unit of cosine)."
    )
    return Table("Toy ranking", caption, columns, [Section("", rows)])


def _draw(found: dict[str, dict], exact: float, data: pd.DataFrame) -> Drawing:
    colours = {True: LOOKS["fast_ap"].colour, False: LOOKS["roadmap"].colour}
    with styled():
        figure, grid = new_figure(DOUBLE, 3.3, len(found), 1, sharex=True)
        for axes, (name, item) in zip(grid[:, 0], found.items(), strict=True):
            largest = np.abs(item["gradient"]).max()
            axes.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
            marks = zip(SCORES, SCORES.values(), POSITIVE, item["gradient"], strict=True)
            for index, (point, score, positive, slope) in enumerate(marks):
                shape = "o" if positive else "X"
                axes.plot(score, 0, shape, color=colours[bool(positive)], markersize=6.5)
                side = -1 if index == 0 else 1  # the two positives are close: words to either side
                words = (
                    f"{point}: {-slope:+.2g}"
                    if abs(slope) >= 0.005 * max(largest, 1)
                    else f"{point}: none"
                )
                axes.annotate(
                    words,
                    (score, 0),
                    xytext=(8 * side, -13),
                    textcoords="offset points",
                    ha="right" if side < 0 else "left",
                    color=INK,
                )
                if abs(slope) >= 0.005 * max(largest, 1):
                    length = -np.sign(slope) * 0.02 * np.sqrt(abs(slope) / largest)
                    _arrow(
                        axes, score, length, 0.72 if index == 1 else 0.38, colours[bool(positive)]
                    )
            axes.set_ylim(-0.9, 0.9)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.set_title(f"{name}: {item['value']:.3f} (AP loss {exact:.3f})", loc="left")
        axes.set_xlim(0.62, 0.84)
        axes.set_xlabel("score (cosine)")
    caption = (
        "Two positives (circles) below a negative (cross). Arrows: the direction in which one gradient step moves "
        "each score, their length the square root of its size within a panel; numbers: minus the derivative of the "
        "loss by the score, per unit of cosine; none: under half a percent of the panel's largest, or under 0.005. "
        "tau = 0.01."
    )
    parts = [
        f"{name} " + ", ".join(f"{-slope:+.2g}" for slope in item["gradient"])
        for name, item in found.items()
    ]
    alt = (
        "Three rankings of three points with arrows for the gradient steps on x1, x2 and x3: "
        + "; ".join(parts)
        + "."
    )
    return Drawing("Toy ranking", caption, alt, figure, data)


def _arrow(axes: Any, start: float, length: float, height: float, colour: str) -> None:
    axes.annotate(
        "",
        (start + length, height),
        xytext=(start, height),
        arrowprops={
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 1.6,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
