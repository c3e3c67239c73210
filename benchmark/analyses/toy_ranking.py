"""The toy ranking of ROADMAP: what each smooth rank does with two positives below a negative."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, cells, finding, numeric
from benchmark.analyses.context import Context
from benchmark.analyses.gap import average_precision
from benchmark.core.seeding import derive
from benchmark.report.drawing import DOUBLE, FAINT, INK, STYLES, Drawing, new_figure, styled
from benchmark.report.records import Finding
from benchmark.report.table import Section, Table, text_column

TITLE = "Toy ranking"
# ROADMAP v2, supplement A.1: s3 - s2 = 0.13 and s3 - s1 = 0.14; only differences matter.
SCORES = {"x1": 0.66, "x2": 0.67, "x3": 0.80}
POSITIVE = np.array([True, True, False])
STEPPED = "SmoothAP, true step for positives"
VANISHED = 1e-9  # change of the loss per unit of cosine
DRAWS = 2000

Ranking = tuple[np.ndarray, np.ndarray]  # scores (R,), which are positive (R,)


@dataclass(frozen=True)
class Properties:
    """What holds of a loss over many rankings.

    below     share with a loss below the AP loss
    vanished  share of misranked negatives without gradient
    smallest  smallest gradient of a misranked negative
    """

    below: float
    vanished: float
    smallest: float


@dataclass(frozen=True)
class Outcome:
    """The value and the gradient (3,) of a loss on the toy ranking, and its properties."""

    value: float
    gradient: np.ndarray
    properties: Properties


def toy_losses() -> dict[str, Any]:
    """Return {name: loss}: SmoothAP, SmoothAP with a true step in rank+, and SupAP, tau = 0.01."""
    from benchmark.losses import create_loss

    # Without start, and with a linear part that no cosine reaches, H- of SupAP is the sigmoid.
    stepped = create_loss("sup_ap", start=0.0, delta=10.0)
    return {"SmoothAP": create_loss("smooth_ap"), STEPPED: stepped, "SupAP": create_loss("sup_ap")}


def value_and_gradient(
    loss: Any, scores: np.ndarray, positive: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return 1 - AP of one query in the loss's relaxation and its gradient (R,) in the scores."""
    import torch

    row = torch.tensor(scores[None], dtype=torch.float64, requires_grad=True)
    value = loss.query_losses(row, torch.tensor(positive[None]))[0]
    value.backward()
    assert row.grad is not None
    return value.item(), row.grad[0].numpy()


def random_rankings(count: int, seed: int = 0) -> list[Ranking]:
    """Return rankings of 1 to 5 positives among 1 to 20 negatives, near and far apart."""
    rng = np.random.default_rng(derive(seed, "random rankings"))
    rankings = []
    for _ in range(count):
        positives, negatives = rng.integers(1, 6), rng.integers(1, 21)
        spread = rng.choice([0.01, 0.05, 0.2])
        scores = np.clip(rng.normal(0.5, spread, positives + negatives), -1, 1)
        rankings.append((scores, np.arange(len(scores)) < positives))
    return rankings


def properties(loss: Any, rankings: list[Ranking]) -> Properties:
    """Return what holds of a loss over the rankings."""
    below, gradients = 0, []
    for scores, positive in rankings:
        value, gradient = value_and_gradient(loss, scores, positive)
        below += value < 1 - average_precision(scores[positive], scores[~positive]) - 1e-12
        misranked = ~positive & (scores > scores[positive].min())
        gradients.extend(gradient[misranked])
    smallest = np.array(gradients)
    return Properties(
        below / len(rankings), float(np.mean(smallest < VANISHED)), float(smallest.min())
    )


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
    """Return the gradients on the toy ranking, and how often the losses' properties hold."""
    scores = np.array(list(SCORES.values()))
    exact = 1 - average_precision(scores[POSITIVE], scores[~POSITIVE])
    rankings = random_rankings(200 if context.quick else DRAWS)
    outcomes = {
        name: Outcome(*value_and_gradient(loss, scores, POSITIVE), properties(loss, rankings))
        for name, loss in toy_losses().items()
    }
    parts = [
        pd.DataFrame(
            {
                "loss": name,
                "point": list(SCORES),
                "score": scores,
                "gradient": outcome.gradient,
                "value": outcome.value,
                "ap_loss": exact,
            }
        )
        for name, outcome in outcomes.items()
    ]
    drawing = _draw(outcomes, exact, pd.concat(parts, ignore_index=True))
    count = len(rankings)
    return Analysis(drawing, _table(outcomes, exact, count), _claims(outcomes, exact, count))


def _claims(outcomes: dict[str, Outcome], exact: float, draws: int) -> list[Finding]:
    place = "ROADMAP v1 Fig. 7, v2 Fig. 8"
    smooth, stepped, sup = outcomes["SmoothAP"], outcomes[STEPPED], outcomes["SupAP"]
    first, second, third = smooth.gradient
    largest = np.abs(stepped.gradient).max()
    return [
        finding(
            "opposite_gradients",
            place,
            "SmoothAP gives the two positives opposite gradients",
            f"SmoothAP's gradients on the two positives are {first:.3g} and {second:.3g}.",
            bool(first * second < 0 and abs(first + second) < 0.01 * abs(first)),
        ),
        finding(
            "vanishing_gradient",
            place,
            "SmoothAP gives the misranked negative no gradient",
            f"SmoothAP's gradient on the negative is {third:.1e}, against {abs(first):.3g} on a "
            f"positive; over {draws} random rankings {100 * smooth.properties.vanished:.0f}% of "
            f"the misranked negatives get less than {VANISHED:g}.",
            bool(third < 0.01 * abs(first)),
        ),
        finding(
            "no_upper_bound",
            place,
            "SmoothAP can be lower than the AP loss",
            f"SmoothAP is {smooth.value:.4f} where the AP loss is {exact:.4f}, and it is lower in "
            f"{100 * smooth.properties.below:.0f}% of the random rankings.",
            bool(smooth.value < exact and smooth.properties.below > 0),
        ),
        finding(
            "true_step",
            "ROADMAP v1 Fig. 8(a), v2 Fig. 9(a)",
            "a true step for positives ends the contradiction, but gradients still vanish",
            f"With a true step for positives the largest gradient is {largest:.1e}.",
            bool(largest < 0.01 * abs(first)),
        ),
        finding(
            "sup_ap_directions",
            "ROADMAP v1 Fig. 8(b), v2 Fig. 9(b)",
            "SupAP raises both positives and lowers the negative",
            "SupAP's gradients are {:.3g}, {:.3g} and {:+.3g}.".format(*sup.gradient),
            bool((np.sign(sup.gradient) == [-1, -1, 1]).all()),
        ),
        finding(
            "upper_bound",
            "ROADMAP Sec. 3.1, property 1",
            "SupAP is never below the AP loss",
            f"SupAP is {sup.value:.4f} against an AP loss of {exact:.4f}, and below it in "
            f"{100 * sup.properties.below:.3g}% of {draws} random rankings.",
            bool(sup.properties.below == 0 and sup.value >= exact),
        ),
        finding(
            "gradient_until_right",
            "ROADMAP Sec. 3.1, property 2",
            "SupAP's gradient on a misranked negative never vanishes",
            "SupAP's smallest gradient on a misranked negative of the random rankings is "
            f"{sup.properties.smallest:.1e}.",
            sup.properties.smallest > 0 and sup.properties.vanished == 0,
        ),
    ]


def _table(outcomes: dict[str, Outcome], exact: float, draws: int) -> Table:
    random = f"{draws} random rankings"
    columns = [text_column("loss"), numeric("value"), numeric("AP loss")]
    columns += [numeric("gradient", point) for point in SCORES]
    columns += [numeric(random, name) for name in ("share below AP loss", "share vanished")]
    columns += [numeric(random, "smallest gradient")]
    rows = [
        [
            *cells(name, item.value, exact, *item.gradient, digits=4),
            *cells(*vars(item.properties).values()),
        ]
        for name, item in outcomes.items()
    ]
    scores = ", ".join(f"{score:.2f}" for score in SCORES.values())
    caption = (
        f"Two positives x1, x2 and a negative x3 with scores {scores}: loss, AP loss, and "
        "derivative of the loss with respect to each score. Random rankings: how often the loss is "
        "below the AP loss, and gradients of misranked negatives (vanished: below "
        f"{VANISHED:g} per unit of cosine)."
    )
    return Table(TITLE, caption, columns, [Section("", rows)])


def _draw(outcomes: dict[str, Outcome], exact: float, data: pd.DataFrame) -> Drawing:
    with styled():
        figure, grid = new_figure(DOUBLE, 3.3, len(outcomes), 1, sharex=True)
        for axes, (name, item) in zip(grid[:, 0], outcomes.items(), strict=True):
            axes.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
            _draw_points(axes, item.gradient)
            axes.set_ylim(-0.9, 0.9)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.set_title(f"{name}: {item.value:.3f} (AP loss {exact:.3f})", loc="left")
        axes.set_xlim(0.62, 0.84)
        axes.set_xlabel("score (cosine)")
    caption = (
        "Two positives (circles) below a negative (cross). Arrows: the direction in which one "
        "gradient step moves each score, their length the square root of its size within a panel; "
        "numbers: minus the derivative of the loss with respect to the score, per unit of cosine; "
        "none: under half a percent of the panel's largest, or under 0.005. tau = 0.01."
    )
    told = "; ".join(
        f"{name} " + ", ".join(f"{-slope:+.2g}" for slope in item.gradient)
        for name, item in outcomes.items()
    )
    alt = (
        "Three rankings of three points with arrows for the gradient steps on x1, x2 and x3: "
        f"{told}."
    )
    return Drawing(TITLE, caption, alt, figure, data)


def _draw_points(axes: Any, gradient: np.ndarray) -> None:
    """Draw the three points of one ranking, and the step that the gradient asks of each."""
    largest = np.abs(gradient).max()
    for index, (point, score) in enumerate(SCORES.items()):
        positive, slope = POSITIVE[index], gradient[index]
        colour = STYLES["fast_ap" if positive else "roadmap"].colour
        axes.plot(score, 0, "o" if positive else "X", color=colour, markersize=6.5)
        moves = abs(slope) >= 0.005 * max(largest, 1)
        side = -1 if index == 0 else 1  # the two positives are close: words to either side
        axes.annotate(
            f"{point}: {-slope:+.2g}" if moves else f"{point}: none",
            (score, 0),
            xytext=(8 * side, -13),
            textcoords="offset points",
            ha="right" if side < 0 else "left",
            color=INK,
        )
        if moves:
            length = -np.sign(slope) * 0.02 * np.sqrt(abs(slope) / largest)
            height = 0.72 if index == 1 else 0.38
            arrow = {"arrowstyle": "-|>", "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
            axes.annotate(
                "",
                (score + length, height),
                xytext=(score, height),
                arrowprops={**arrow, "color": colour},
            )
