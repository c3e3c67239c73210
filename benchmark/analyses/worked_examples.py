"""What the losses do without training: the papers' small examples, toy ranking, surrogates."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Context, generator, rising, shades
from benchmark.analyses.decomposability_gap import (
    Batch,
    ap_loss,
    average_precision,
    gap,
    plain_bound,
    value_and_gradient,
)
from benchmark.core.words import listed
from benchmark.report.drawing import DOUBLE, FAINT, STYLES, new_figure, styled
from benchmark.report.labels import loss_name

# ROADMAP A.3
TAU = 0.01
EPSILON = 0.01
DELTA = TAU * math.log((1 - EPSILON) / EPSILON)  # where the sigmoid is 1 - epsilon
# ROADMAP 4
ALPHA = 0.9
BETA = 0.6
# ROADMAP figures 10, 11: each batch ranked perfectly, the second all below the first. Scores: ours.
BATCHES = (
    Batch(np.array([0.95, 0.9]), np.array([0.8, 0.75])),
    Batch(np.array([0.6, 0.55]), np.array([0.4, 0.35])),
)
# Smooth-AP 4.1: the instances by score, and which of them are positive.
ORDER = (0, 4, 1, 2, 5, 6, 7, 3)
INSTANCES = (0, 1, 2, 3)
# FastAP figure 4c: a perfect ranking of a small margin. Scores are ours.
NEAR = np.array([0.50, 0.49, 0.48, 0.38, 0.37, 0.36])
RELEVANT = np.array([True, True, True, False, False, False])
BINS = (1, 2, 5, 10, 20, 40, 80)
NO_GRADIENT = 0.005  # change of the loss per unit of cosine: a smaller one is called none
# FastAP 3.1: of the larger of two uniform scores against one, AUPR is the integral of
# 2 t (1 + t) / (2 + t) over the threshold t from 0 to 1.
AUPR = 4 * math.log(1.5) - 1
POSITIVES = (4, 16, 64, 256, 1024)
SLACK = 0.4  # by which scores may lie below ALPHA or above BETA, to show that there are gaps
EXAMPLES = 2000


def loss_of(name: str, **params: Any) -> Any:
    """Return a loss with its defaults, but for ``params``."""
    from benchmark.losses import create_loss  # imports torch

    return create_loss(name, **params)


def slope(difference: Any) -> Any:
    """Return the derivative of sigmoid(difference / ``TAU``) by the difference."""
    share = 1 / (1 + np.exp(-difference / TAU))
    return share * (1 - share) / TAU


def violations() -> dict[str, float]:
    """Return by how much the AP grows if the two items of a violating term change places.

    Terms are those of Smooth-AP's example: a negative above a positive, in the order of the paper.
    """

    def ap(order: Sequence[int]) -> float:
        scores = -np.arange(len(order), dtype=float)
        return 1 - ap_loss(scores, np.isin(order, INSTANCES))

    gains = {}
    for positive in INSTANCES:
        for negative in ORDER[: ORDER.index(positive)]:
            if negative not in INSTANCES:
                swapped = {positive: negative, negative: positive}
                after = [swapped.get(item, item) for item in ORDER]
                gains[f"s{negative} - s{positive}"] = ap(after) - ap(ORDER)
    return gains


def algorithm_1(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the AP of Smooth-AP's Algorithm 1 as it is printed, with exact ranks.

    Its numerator multiplies the ranks among all by the labels, where Eq. 5 has the ranks among
    the positives.
    """
    rank = 1.0 + (scores > scores[:, None]).sum(axis=1)
    return (positive * rank / rank).sum() / positive.sum()


def distance_to_area(positives: int) -> float:
    """Return the mean |AP - AUPR| over queries with so many positives and negatives."""
    rng = generator("area", positives)
    positive = np.sqrt(rng.random((EXAMPLES // 10, positives)))
    negative = rng.random(positive.shape)
    values = [average_precision(*query) for query in zip(positive, negative, strict=True)]
    return np.abs(np.array(values) - AUPR).mean()


def one_bin(scores: np.ndarray) -> float:
    """Return FastAP Eq. 14 of scores whose ``RELEVANT`` ones are positive, with one hard bin."""
    positives, _ = np.histogram(scores[RELEVANT], 1, (-1, 1))
    items, _ = np.histogram(scores, 1, (-1, 1))
    return (positives * positives / items).sum() / RELEVANT.sum()


def gaps(slack: float) -> np.ndarray:
    """Return the gaps of drawn pairs of batches, whose scores keep alpha and beta up to a slack."""
    rng = generator("calibrated batches", str(slack))
    positives = rng.uniform(ALPHA - slack, 1, (EXAMPLES, 2, 3))
    negatives = rng.uniform(0, BETA + slack, (EXAMPLES, 2, 6))
    values = []
    for of_pair in zip(positives, negatives, strict=True):
        values.append(gap([*map(Batch, *of_pair)]))
    return np.array(values)


@ANALYSES.register(
    "worked_examples",
    display="Worked examples of the papers",
    places=(
        "ROADMAP v2 Fig. 1(b), 10, 11 and 12, A.3 and Sec. 3.2",
        "Smooth-AP Sec. 4.1, Algorithm 1",
        "FastAP Sec. 3.1 and 5.3, Fig. 4(c)",
    ),
    trains=False,
)
def worked_examples(context: Context) -> Analysis:
    """Return the examples with the papers' statements about them."""
    calibrations = _calibration_losses()
    toy_gap = gap(BATCHES)
    bound = plain_bound(BATCHES)
    steep = slope(DELTA)
    gains = violations()
    by_bins = _gradients_by_bins()
    gradients = by_bins.set_index("x")["value"]
    printed = _values_of_algorithm_1()
    errors = {count: distance_to_area(count) for count in POSITIVES}
    rng = generator("one bin")
    scores = rng.uniform(-1, 1, (EXAMPLES, len(NEAR)))
    constant = {one_bin(row) for row in scores}
    none = np.abs(gaps(0.0)).max()
    some = gaps(SLACK).mean()
    rows: list[tuple[str, str, float, float]] = []

    def add(example: str, setting: str, value: float, gradient: float = math.nan) -> None:
        rows.append((example, setting, value, gradient))

    add("toy gap", "gap of two perfect batches", toy_gap)
    add("worst case", "bound of Eq. 8", bound)
    for number, calibration in enumerate(calibrations, 1):
        add("calibration", f"batch {number}", calibration)
    add("delta", f"tau = {TAU:g}", DELTA, steep)
    for term, gain in gains.items():
        add("AP gained by exchange", term, gain)
    add("Algorithm 1 as printed", f"{len(printed)} random rankings", min(printed))
    for bins, loss, gradient in by_bins.itertuples(index=False):
        add("FastAP", f"{bins} bins", loss, gradient)
    for count, error in errors.items():
        add("|AP - AUPR|", f"{count} positives", error)
    values = {
        "tau": TAU,
        "at": DELTA,
        "steep": steep,
        "gradient": steep * TAU,
        "share": 100 * 4 * steep * TAU,
        "gap": toy_gap,
        "bound": bound,
        "terms": len(gains),
        "calibrations": listed(calibrations, ".3f"),
        "bins": listed(BINS),
        "gradients": gradients,
        "by_bins": listed(gradients, ".2g"),
        "least": min(printed),
        "most": max(printed),
        "random": len(printed),
        "more": gains["s4 - s1"],
        "less": gains["s7 - s3"],
        "area": AUPR,
        "errors": listed(errors.values(), ".4f"),
        "positives": listed(POSITIVES),
        "draws": EXAMPLES,
        "constant": max(constant),
        "none": none,
        "some": some,
        "slack": SLACK,
    }
    all_perfect = all(batch.perfect for batch in BATCHES)
    claims = {
        "toy_gap": all_perfect and toy_gap > 0 and min(calibrations) > 0,
        "worst_case": math.isclose(toy_gap, bound, abs_tol=1e-12),
        "delta_is_about_0.05": round(DELTA, 2) == 0.05,
        "gradient_at_delta": steep * TAU < EPSILON,
        "algorithm_1_ranks": min(printed) < 1,
        "terms_are_unequal": len(gains) == 6 and values["more"] > values["less"],
        "coarse_bins_keep_a_gradient": gradients[80] < NO_GRADIENT < gradients[10],
        "ap_tends_to_the_area": rising(-error for error in errors.values()),
        "one_bin_learns_nothing": len(constant) == 1,
        "no_gap_without_calibration_loss": none == 0 and some > 0,
    }
    parts = _panels(gains, by_bins)
    figure = _draw_examples(*parts)
    data = pd.concat(parts, ignore_index=True)
    headers = ["example", "setting", "value", "gradient"]
    return Analysis(figure, data, headers, [("", row) for row in rows], values, claims)


def _calibration_losses() -> list[float]:
    """Return the calibration loss of each toy batch (ROADMAP Eq. 7)."""
    losses = []
    for positive, negative in BATCHES:
        lack = np.maximum(ALPHA - positive, 0).mean()
        excess = np.maximum(negative - BETA, 0).mean()
        losses.append(lack + excess)
    return losses


def _gradients_by_bins() -> pd.DataFrame:
    """Return FastAP (loss) and its largest gradient (value) for each number of bins (x)."""
    rows = []
    for bins in BINS:
        value, gradient = value_and_gradient(loss_of("fast_ap", bins=bins), NEAR, RELEVANT)
        rows.append((bins, value, np.abs(gradient).max()))
    return pd.DataFrame(rows, columns=["x", "loss", "value"])


def _values_of_algorithm_1() -> list[float]:
    """Return Algorithm 1, as printed, of a random ranking for each number of positives."""
    draws = generator("algorithm 1")
    values = []
    for positives in range(1, 12):
        scores = draws.random(12)
        relevant = draws.permutation(12) < positives
        values.append(algorithm_1(scores, relevant))
    return values


def _panels(gains: Mapping[str, float], by_bins: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the values of the three panels of the figure."""
    x = np.linspace(-0.1, 0.1, 401)
    return [
        pd.DataFrame({"panel": "sigmoid", "x": x, "value": slope(x)}),
        pd.DataFrame({"term": gains.keys(), "value": gains.values(), "panel": "terms"}),
        by_bins.assign(panel="bins"),
    ]


def _draw_examples(sigmoid: pd.DataFrame, terms: pd.DataFrame, by_bins: pd.DataFrame) -> Any:
    with styled():
        figure, ((first, second, third),) = new_figure(DOUBLE, 2.6, 1, 3)
        first.plot(sigmoid["x"], sigmoid["value"], color=STYLES["sup_ap"].colour)
        for side in (-DELTA, DELTA):
            first.axvline(side, color=FAINT, linewidth=0.8, linestyle="--")
        first.set(title="Sigmoid's gradient, ±δ", xlabel="difference of scores (cosine)")
        first.set_ylabel("derivative (per cosine)")
        second.bar(terms["term"], terms["value"], color=STYLES["smooth_ap"].colour)
        second.tick_params("x", rotation=45)
        second.set(title="AP gained by exchange", ylabel="AP (0 to 1)")
        third.plot(by_bins["x"], by_bins["value"], "o-", color=STYLES["fast_ap"].colour)
        third.set_xscale("log", base=2)
        third.set_xticks(BINS, [*map(str, BINS)])
        third.set(title="FastAP, perfect ranking", xlabel="histogram bins")
        third.set_ylabel("largest gradient (per cosine)")
    return figure


# ROADMAP v2, supplement A.1: s3 - s2 = 0.13 and s3 - s1 = 0.14; only differences matter.
SCORES = {"x1": 0.66, "x2": 0.67, "x3": 0.80}
TOY_POSITIVE = np.array([True, True, False])
TOY = (np.array(list(SCORES.values())), TOY_POSITIVE)
STEPPED = "SmoothAP, true step for positives"
DRAWS = 2000


class LossOutcome(NamedTuple):
    """The value and the gradient (3,) of a loss on the toy ranking, and results on random rankings.

    below     share of rankings with a loss below the AP loss
    none      share of misranked negatives without gradient: under ``NO_GRADIENT``
    smallest  smallest gradient of a misranked negative
    """

    value: float
    gradient: np.ndarray
    below: float
    none: float
    smallest: float


def toy_losses() -> dict[str, Any]:
    """Return {name: loss}: SmoothAP, SmoothAP with a true step in rank+, and SupAP, tau = 0.01."""
    # Without start, and with a linear part that no cosine reaches, H- of SupAP is the sigmoid.
    stepped = loss_of("sup_ap", start=0.0, delta=10.0)
    return {"SmoothAP": loss_of("smooth_ap"), STEPPED: stepped, "SupAP": loss_of("sup_ap")}


def outcome(loss: Any, count: int) -> LossOutcome:
    """Return the results of a loss on the toy ranking, and on ``count`` random rankings.

    Random rankings have 1 to 5 positives and 1 to 20 negatives.
    """
    rng = generator("random rankings")
    below = 0
    gradients = []
    for _ in range(count):
        positives = rng.integers(1, 6)
        negatives = rng.integers(1, 21)
        spread = rng.choice([0.01, 0.05, 0.2])
        scores = rng.normal(0.5, spread, positives + negatives)
        scores = np.clip(scores, -1, 1)
        positive = np.arange(len(scores)) < positives
        value, gradient = value_and_gradient(loss, scores, positive)
        below += value < ap_loss(scores, positive) - 1e-12
        misranked = ~positive & (scores > scores[positive].min())
        gradients.append(gradient[misranked])
    of_misranked = np.concatenate(gradients)
    value, gradient = value_and_gradient(loss, *TOY)
    return LossOutcome(
        value,
        gradient,
        below=below / count,
        none=(of_misranked < NO_GRADIENT).mean(),
        smallest=of_misranked.min(),
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
def toy_ranking(context: Context) -> Analysis:
    """Return the gradients on the toy ranking, and how often the losses' properties hold."""
    draws = 200 if context.quick else DRAWS
    exact = ap_loss(*TOY)
    outcomes = {name: outcome(loss, draws) for name, loss in toy_losses().items()}
    random = f"{draws} random rankings"
    headers = [
        "loss",
        "value",
        "AP loss",
        *(("gradient", point) for point in SCORES),
        (random, "share below AP loss"),
        (random, f"share under {NO_GRADIENT:g}"),
        (random, "smallest gradient"),
    ]
    rows = []
    for name, (value, gradient, *shares) in outcomes.items():
        rows.append(("", [name, value, exact, *gradient, *shares]))
    smooth, stepped, sup = outcomes.values()
    first, second, third = smooth.gradient
    size = abs(first)
    largest = np.abs(stepped.gradient).max()
    steps_of_losses = []
    for name, item in outcomes.items():
        steps = ", ".join(f"{-slope:+.2g}" for slope in item.gradient)
        steps_of_losses.append(f"{name} {steps}")
    values = {
        "smooth": smooth,
        "sup": sup,
        "exact": exact,
        "random": random,
        "steps": "; ".join(steps_of_losses),
        "scores": listed(SCORES.values(), ".2f"),
        "none": NO_GRADIENT,
        "size": size,
        "sup_below": 100 * sup.below,
        "largest": largest,
    }
    claims = {
        "opposite_gradients": first * second < 0 and abs(first + second) < 0.01 * size,
        "vanishing_gradient": third < NO_GRADIENT,
        "no_upper_bound": smooth.value < exact and smooth.below > 0,
        "true_step": largest < NO_GRADIENT,
        "sup_ap_directions": (np.sign(sup.gradient) == [-1, -1, 1]).all(),
        "upper_bound": sup.below == 0 and sup.value >= exact,
        "gradient_until_right": sup.smallest > 0,
    }
    return Analysis(*_draw_toy(outcomes, exact), headers, rows, values, claims, digits=4)


def _draw_toy(outcomes: dict[str, LossOutcome], exact: float) -> tuple[Any, pd.DataFrame]:
    """Draw the step that the gradient asks of each point: an arrow from its score."""
    parts = []
    with styled():
        figure, grid = new_figure(DOUBLE, 3.3, len(outcomes), 1, sharex=True)
        for axes, (name, item) in zip(grid[:, 0], outcomes.items(), strict=True):
            steps = -item.gradient
            axes.set(title=f"{name}: {item.value:.3f} (AP loss {exact:.3f})", yticks=[])
            axes.set(xlim=(0.62, 0.84), ylim=(-0.9, 0.9))
            axes.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
            sizes = np.abs(steps)
            moves = np.sign(steps) * np.sqrt(sizes / sizes.max())
            shown = sizes >= NO_GRADIENT
            for index, (point, score) in enumerate(SCORES.items()):
                base, mark = ("fast_ap", "o") if TOY_POSITIVE[index] else ("roadmap", "X")
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
            columns = {
                "loss": name,
                "point": [*SCORES],
                "score": TOY[0],
                "gradient": item.gradient,
                "value": item.value,
                "ap_loss": exact,
            }
            parts.append(pd.DataFrame(columns))
        axes.set_xlabel("score (cosine)")
    return figure, pd.concat(parts, ignore_index=True)


SPAN = 0.15  # score differences drawn, cosine units
POINTS = 601  # odd, so that 0 is among them
# Score of the positive: bins lie at fixed scores, so a histogram's answer depends on it.
ANCHOR = 0.3
# Smooth-AP's figure 2 names two relaxations and prints no formulas: these are the hinge, which its
# section 4.1 calls linear, and the exponential, both 1 at a tie and so never below the step.
WIDTH = 0.1  # ours: where the hinge reaches 0
SHIFTS = ((0.8, 0.5), (0.2, -0.1))  # of s4 - s1 in section 4.1
DASHES = ("-", "--", ":")
BINNED = {"fast_ap": 10, "softbin_ap": 20}
PANELS = ("SmoothAP", "relaxations", "SupAP", "soft bins", "BlackBoxAP")
PROBES = {"0.1 below": -0.1, "0.02 above": 0.02, "0.13 above": 0.13}
FAR = np.array([0.13])  # beyond SmoothAP's operating region

Curve = tuple[np.ndarray, np.ndarray]  # values (n,) and derivatives (n,)
RELAXATIONS: dict[str, Callable[[np.ndarray], Curve]] = {
    "linear": lambda x: (np.maximum(1 + x / WIDTH, 0.0), np.where(x > -WIDTH, 1 / WIDTH, 0.0)),
    "exponential": lambda x: (np.exp(x / WIDTH), np.exp(x / WIDTH) / WIDTH),
}


def pair(loss: Any, difference: np.ndarray, positive: float = ANCHOR) -> Curve:
    """Return 1 - AP (n,) of one positive and one negative ``difference`` above it, and its slope.

    The slope is the derivative with respect to the negative's score. The loss computes both.
    """
    of_positive = np.full(len(difference), positive)
    scores = np.stack([of_positive, positive + difference], axis=1)
    values, gradients = value_and_gradient(loss, scores, np.array([True, False]))
    return values, gradients[:, 1]


def step_of(loss: Any, difference: np.ndarray) -> Curve:
    """Return the function that stands for the step, and its derivative.

    With one positive and one negative AP = 1 / (1 + h), so the loss L gives h = L / (1 - L).
    """
    values, slopes = pair(loss, difference)
    return values / (1 - values), slopes / (1 - values) ** 2


def bin_share(scores: np.ndarray, centers: int, index: int) -> Curve:
    """Return the share of a score in soft bin ``index`` of ``centers`` on [-1, 1], and its slope.

    FastAP Eq. 8; listwise loss Eq. 7.
    """
    width = 2.0 / (centers - 1)
    offset = scores - (1.0 - width * index)
    inside = np.abs(offset) < width
    share = np.where(inside, 1.0 - np.abs(offset) / width, 0.0)
    return share, np.where(inside, -np.sign(offset) / width, 0.0)


def interpolation(loss: Any, difference: np.ndarray) -> Curve:
    """Return the piecewise linear function whose slopes BlackBoxAP uses, and these slopes.

    Its gradient on the negative is d(1 - AP) / d rank times such a slope; with the positive on rank
    2 the first factor is 1/4. The function is the running integral of the slopes.
    """
    _, derivatives = pair(loss, difference)
    slopes = 4.0 * derivatives
    means = (slopes[1:] + slopes[:-1]) / 2
    areas = means * np.diff(difference)
    return np.concatenate([[0.0], np.cumsum(areas)]), slopes


def curves() -> pd.DataFrame:
    """Return every curve: panel, base (loss), curve (words), x, value, derivative."""
    grid = np.linspace(-SPAN, SPAN, POINTS)
    wide = np.linspace(-SPAN, SPAN, 10 * (POINTS - 1) + 1)
    scores = np.linspace(-0.4, 0.4, POINTS)
    parts = []

    def add(panel: str, base: str, words: str, x: np.ndarray, curve: Curve) -> None:
        value, derivative = curve
        names = {"panel": panel, "base": base, "curve": words}
        parts.append(pd.DataFrame({**names, "x": x, "value": value, "derivative": derivative}))

    for tau in (0.001, 0.01, 0.05):
        curve = step_of(loss_of("smooth_ap", tau=tau), grid)
        add("SmoothAP", "smooth_ap", f"tau {tau:g}", grid, curve)
    for name, relaxation in RELAXATIONS.items():
        add("relaxations", "relaxation", name, grid, relaxation(grid))
    for rho in (0.0, 10.0, 100.0):
        curve = step_of(loss_of("sup_ap", rho=rho), grid)
        add("SupAP", "sup_ap", f"rho {rho:g}", grid, curve)
    for name, centers in (("fast_ap", 11), ("softbin_ap", 20)):
        middle = (centers - 1) // 2
        for index in (middle - 1, middle, middle + 1):
            curve = bin_share(scores, centers, index)
            add("soft bins", name, f"bin {index + 1} of {centers}", scores, curve)
    for step in (0.05, 0.1, 0.2):
        curve = interpolation(loss_of("blackbox_ap", lambda_val=step, margin=0.0), wide)
        add("BlackBoxAP", "blackbox_ap", f"lambda {step:g}", wide, curve)
    return pd.concat(parts, ignore_index=True)


@ANALYSES.register(
    "surrogates",
    display="Surrogates of the step and their derivatives",
    places=(
        "Smooth-AP Fig. 2",
        "ROADMAP Fig. 3",
        "FastAP Eq. 8",
        "listwise loss Eq. 7",
        "BlackBoxAP",
    ),
    trains=False,
)
def surrogates(context: Context) -> Analysis:
    """Return the functions as the losses compute them; nothing is trained."""
    losses = {name: loss_of(name) for name in ("smooth_ap", "sup_ap", *BINNED)}
    losses["blackbox_ap"] = loss_of("blackbox_ap", margin=0.0)
    probes = np.array([*PROBES.values()])
    slopes = {}
    for name, loss in losses.items():
        _, slopes[name] = pair(loss, probes)
    grid = np.linspace(-1.0, 1.0, 4001)
    step = (grid >= 0).astype(float)
    smooth_ap = losses["smooth_ap"]
    sup_ap = losses["sup_ap"]
    sup, sup_slope = step_of(sup_ap, grid)
    above = (sup - step).min()
    below = (step - step_of(smooth_ap, grid)[0]).max()
    lowest = sup_slope[grid > 0].min()

    def region(tau: float) -> float:
        """Return the largest difference at which SmoothAP has a gradient."""
        _, derivative = step_of(loss_of("smooth_ap", tau=tau), grid)
        return np.abs(grid[derivative > NO_GRADIENT]).max()

    _, (smooth_far,) = step_of(smooth_ap, FAR)
    _, (sup_far,) = step_of(sup_ap, FAR)
    narrow = region(0.01)
    wide = region(0.1)
    before, after = np.array(SHIFTS).T
    sigmoid = step_of(smooth_ap, before)[0] - step_of(smooth_ap, after)[0]
    drops = {
        name: relaxation(before)[0] - relaxation(after)[0]
        for name, relaxation in RELAXATIONS.items()
    }
    drops["sigmoid"] = sigmoid
    words = (f"the {name} by {one:.3g} and {two:.3g}" for name, (one, two) in drops.items())
    values = {
        "above": above,
        "below": below,
        "lowest": lowest,
        "narrow": narrow,
        "wide": wide,
        "smooth_far": smooth_far,
        "sup_far": sup_far,
        "drops": "; ".join(words),
        "slopes": slopes,
        "anchor": ANCHOR,
        "width": WIDTH,
        "none": NO_GRADIENT,
    }
    linear_is_equal = np.isclose(*drops["linear"])
    order = linear_is_equal and sigmoid[0] < 0.01 and sigmoid[1] > 0.99
    claims = {
        "h_minus_above_step": above >= -1e-12 and below > 0,
        "gradient_beyond_the_region": smooth_far < NO_GRADIENT < lowest and sup_far > 1,
        "only_the_sigmoid_rewards_a_change_of_order": order,
        "margin_is_about_0.1": round(narrow, 1) == 0.1,
        "small_tau_small_region": narrow < wide,
    }
    headers = ["loss", *(("gradient on the negative", words) for words in PROBES)]
    rows = [("", [loss_name(name), *gradients]) for name, gradients in slopes.items()]
    data = curves()
    return Analysis(_draw_surrogates(data), data, headers, rows, values, claims)


def _draw_surrogates(data: pd.DataFrame) -> Any:
    """Draw the functions of each panel above, and their derivatives below."""
    with styled():
        figure, grid = new_figure(DOUBLE, 3.7, 2, len(PANELS))
        for panel, (upper, lower) in zip(PANELS, grid.T, strict=True):
            soft = panel == "soft bins"
            for base, of_loss in data[data["panel"] == panel].groupby("base", sort=False):
                colour = STYLES[str(base)].colour if base in STYLES else FAINT
                tones = shades(colour, of_loss["curve"].nunique())
                by_curve = of_loss.groupby("curve", sort=False)
                for (words, curve), tone, dash in zip(by_curve, tones, DASHES, strict=False):
                    style: dict[str, Any] = {"color": tone, "linestyle": dash, "label": words}
                    if soft:  # one style for the bins of a loss, which the legend names once
                        style = {"color": colour, "linestyle": "-" if base == "fast_ap" else "--"}
                        if dash == "-":
                            style["label"] = f"{loss_name(str(base))}, {BINNED[str(base)]}"
                    upper.plot(curve["x"], curve["value"], **style)
                    lower.plot(curve["x"], curve["derivative"], **style)
            if not soft:
                upper.step([-SPAN, 0, SPAN], [0, 1, 1], where="post", color=FAINT, linewidth=0.7)
            corner = "upper center" if soft else "upper left"
            upper.legend(loc=corner, handlelength=1.8, borderaxespad=0.1)
            upper.set_title(panel)
            lower.set_xlabel("score" if soft else "s_neg - s_pos")
            for axes in (upper, lower):
                axes.set_xticks([-0.3, 0, 0.3] if soft else [-0.1, 0, 0.1])
        grid[0, 0].set_ylabel("in place of the step")
        grid[0, PANELS.index("soft bins")].set_ylabel("share of a score")
        grid[1, 0].set(ylabel="derivative (per cosine)")
        grid[1, 0].set_yscale("symlog", linthresh=1)
        for axes, top in zip(grid[0], (1.75, 6.3, None, 1.75, 1.75), strict=True):
            axes.set_ylim(None if top is None else -0.05, top)
    return figure
