"""The toy ranking of ROADMAP: what each smooth rank does with two positives below a negative."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, finding, listed, table
from benchmark.analyses.context import Context
from benchmark.analyses.gap import ap_loss, value_and_gradient
from benchmark.core.seeding import derive
from benchmark.report.drawing import DOUBLE, FAINT, STYLES, Drawing, new_figure, styled
from benchmark.report.records import Finding

TITLE = "Toy ranking"
# ROADMAP v2, supplement A.1: s3 - s2 = 0.13 and s3 - s1 = 0.14; only differences matter.
SCORES = {"x1": 0.66, "x2": 0.67, "x3": 0.80}
POSITIVE = np.array([True, True, False])
TOY = (np.array(list(SCORES.values())), POSITIVE)
STEPPED = "SmoothAP, true step for positives"
VANISHED = 1e-9  # change of the loss per unit of cosine
DRAWS = 2000


class Outcome(NamedTuple):
    """The value and the gradient (3,) of a loss on the toy ranking, and what holds of many others.

    below     share with a loss below the AP loss
    vanished  share of misranked negatives without gradient
    smallest  smallest gradient of a misranked negative
    """

    value: float
    gradient: np.ndarray
    below: float
    vanished: float
    smallest: float


def toy_losses() -> dict[str, Any]:
    """Return {name: loss}: SmoothAP, SmoothAP with a true step in rank+, and SupAP, tau = 0.01."""
    from benchmark.losses import create_loss

    # Without start, and with a linear part that no cosine reaches, H- of SupAP is the sigmoid.
    stepped = create_loss("sup_ap", start=0.0, delta=10.0)
    return {"SmoothAP": create_loss("smooth_ap"), STEPPED: stepped, "SupAP": create_loss("sup_ap")}


def random_rankings(count: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield scores (R,) of 1 to 5 positives and 1 to 20 negatives, and which are positive (R,)."""
    rng = np.random.default_rng(derive(seed, "random rankings"))
    for _ in range(count):
        positives, negatives = rng.integers(1, 6), rng.integers(1, 21)
        spread = rng.choice([0.01, 0.05, 0.2])
        scores = np.clip(rng.normal(0.5, spread, positives + negatives), -1, 1)
        yield scores, np.arange(len(scores)) < positives


def outcome(loss: Any, count: int, seed: int = 0) -> Outcome:
    """Return what a loss makes of the toy ranking, and of ``count`` random ones."""
    below, gradients = 0, []
    for scores, positive in random_rankings(count, seed):
        value, gradient = value_and_gradient(loss, scores, positive)
        below += value < ap_loss(scores, positive) - 1e-12
        gradients.append(gradient[~positive & (scores > scores[positive].min())])
    misranked = np.concatenate(gradients)
    vanished = float((misranked < VANISHED).mean())
    found = value_and_gradient(loss, *TOY)
    return Outcome(*found, below / count, vanished, float(misranked.min()))


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
    draws, exact = 200 if context.quick else DRAWS, ap_loss(*TOY)
    outcomes = {name: outcome(loss, draws) for name, loss in toy_losses().items()}
    random = f"{draws} random rankings"
    headers = ["loss", "value", "AP loss", *(("gradient", point) for point in SCORES)]
    shares = ("share below AP loss", "share vanished", "smallest gradient")
    headers += [(random, share) for share in shares]
    rows = [
        ("", [name, value, exact, *gradient, *rest])
        for name, (value, gradient, *rest) in outcomes.items()
    ]
    caption = (
        f"Two positives and a negative with scores {listed(SCORES.values(), '.2f')}; on random "
        f"rankings, gradients of misranked negatives (vanished: below {VANISHED:g} per cosine)."
    )
    lines = table(TITLE, caption, headers, rows, digits=4)
    return Analysis(_draw(outcomes, exact), lines, _claims(outcomes, exact, random))


def _claims(outcomes: dict[str, Outcome], exact: float, random: str) -> list[Finding]:
    place = "ROADMAP v1 Fig. 7, v2 Fig. 8"
    smooth, stepped, sup = outcomes.values()
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
            f"It is {third:.1e}, on a positive {abs(first):.3g}; over {random} it vanishes on "
            f"{100 * smooth.vanished:.0f}% of the misranked negatives.",
            bool(third < 0.01 * abs(first)),
        ),
        finding(
            "no_upper_bound",
            place,
            "SmoothAP can be lower than the AP loss",
            f"It is {smooth.value:.4f} where the AP loss is {exact:.4f}, and lower in "
            f"{100 * smooth.below:.0f}% of {random}.",
            bool(smooth.value < exact and smooth.below > 0),
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
            f"It is {sup.value:.4f} where the AP loss is {exact:.4f}, and lower in "
            f"{100 * sup.below:.3g}% of {random}.",
            bool(sup.below == 0 and sup.value >= exact),
        ),
        finding(
            "gradient_until_right",
            "ROADMAP Sec. 3.1, property 2",
            "SupAP's gradient on a misranked negative never vanishes",
            f"SupAP's smallest gradient on one in the random rankings is {sup.smallest:.1e}.",
            sup.smallest > 0 and sup.vanished == 0,
        ),
    ]


def _draw(outcomes: dict[str, Outcome], exact: float) -> Drawing:
    """Draw the step that the gradient asks of each point: an arrow from its score."""
    parts, told = [], []
    with styled():
        figure, grid = new_figure(DOUBLE, 3.3, len(outcomes), 1, sharex=True)
        for axes, (name, item) in zip(grid[:, 0], outcomes.items(), strict=True):
            steps = -item.gradient
            axes.set(title=f"{name}: {item.value:.3f} (AP loss {exact:.3f})", yticks=[])
            axes.set(xlim=(0.62, 0.84), ylim=(-0.9, 0.9))
            axes.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
            moves = np.sign(steps) * np.sqrt(np.abs(steps) / np.abs(steps).max())
            shown = np.abs(steps) >= 0.005 * max(1, np.abs(steps).max())
            for index, (point, score) in enumerate(SCORES.items()):
                base, mark = ("fast_ap", "o") if POSITIVE[index] else ("roadmap", "X")
                colour = STYLES[base].colour
                axes.plot(score, 0, mark, color=colour, markersize=6.5)
                words = f"{point}: {steps[index]:+.2g}" if shown[index] else f"{point}: none"
                side = "left" if index else "right"  # x1 and x2 are close
                axes.text(score, -0.6, words, ha=side)
                if shown[index]:
                    height = 0.7 if point == "x2" else 0.4
                    end = (score + 0.02 * moves[index], height)
                    arrow = {"arrowstyle": "-|>", "linewidth": 1.6, "color": colour}
                    axes.annotate("", end, (score, height), arrowprops=arrow)
            told.append(f"{name} " + ", ".join(f"{step:+.2g}" for step in steps))
            row = {"loss": name, "point": [*SCORES], "score": TOY[0], "gradient": item.gradient}
            parts.append(pd.DataFrame({**row, "value": item.value, "ap_loss": exact}))
        axes.set_xlabel("score (cosine)")
    caption = (
        "Two positives (circles) below a negative (cross), tau = 0.01. Arrows: where a gradient "
        "step moves each score, their length the square root of its size within a panel. Numbers: "
        "minus the derivative by the score; none: under 0.005, or half a percent of the largest."
    )
    alt = f"Three rankings of x1, x2 and x3 with arrows for the gradient steps: {'; '.join(told)}."
    return Drawing(TITLE, caption, alt, figure, pd.concat(parts, ignore_index=True))
