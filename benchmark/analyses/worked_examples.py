"""The small examples that the papers reason with, worked out: no network is trained."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, finding, listed, table
from benchmark.analyses.context import Context
from benchmark.analyses.gap import Batch, ap_loss, gap, plain_bound, value_and_gradient
from benchmark.report.drawing import DOUBLE, FAINT, STYLES, Drawing, new_figure, styled

TITLE = "Worked examples of the papers"
TAU, EPSILON = 0.01, 0.01  # ROADMAP A.3
ALPHA, BETA = 0.9, 0.6  # ROADMAP 4
# ROADMAP figures 10, 11: each batch ranked perfectly, the second all below the first. Scores: ours.
BATCHES = (
    Batch(np.array([0.95, 0.9]), np.array([0.8, 0.75])),
    Batch(np.array([0.6, 0.55]), np.array([0.4, 0.35])),
)
# Smooth-AP 4.1: the instances by score, and which of them are positive.
ORDER, POSITIVE = (0, 4, 1, 2, 5, 6, 7, 3), (0, 1, 2, 3)
# FastAP figure 4c: a perfect ranking of a small margin. Scores are ours.
NEAR = np.array([0.50, 0.49, 0.48, 0.38, 0.37, 0.36])
RELEVANT = np.array([True, True, True, False, False, False])
BINS = (5, 10, 20, 40, 80)


def delta(tau: float, epsilon: float) -> float:
    """Return ROADMAP's delta: sigmoid(delta / tau) = 1 - epsilon (supplement A.3)."""
    return tau * math.log((1 - epsilon) / epsilon)


def slope(difference: np.ndarray, tau: float) -> np.ndarray:
    """Return the derivative of sigmoid(difference / tau) by the difference."""
    share = 1 / (1 + np.exp(-difference / tau))
    return share * (1 - share) / tau


def calibration(batch: Batch) -> float:
    """Return ROADMAP's Eq. 7 for the query of a batch."""
    pull = np.maximum(ALPHA - batch.positive, 0).mean()
    return float(pull + np.maximum(batch.negative - BETA, 0).mean())


def violations() -> dict[str, float]:
    """Return what exchanging the two of each violating term of Smooth-AP's example adds to AP.

    A term is a negative above a positive, in the order of the paper.
    """
    gains = {}
    for positive in POSITIVE:
        for negative in ORDER[: ORDER.index(positive)]:
            if negative not in POSITIVE:
                swapped = {positive: negative, negative: positive}
                after = [swapped.get(each, each) for each in ORDER]
                gains[f"s{negative} - s{positive}"] = _ap(after) - _ap(ORDER)
    return gains


def _ap(order: Sequence[int]) -> float:
    return 1 - ap_loss(-np.arange(len(order), dtype=float), np.isin(order, POSITIVE))


def quantised() -> pd.DataFrame:
    """Return FastAP's loss and its largest gradient on the perfect ranking, by bins."""
    from benchmark.losses import create_loss

    rows = []
    for bins in BINS:
        value, gradient = value_and_gradient(create_loss("fast_ap", bins=bins), NEAR, RELEVANT)
        rows.append({"bins": bins, "loss": value, "gradient": float(np.abs(gradient).max())})
    return pd.DataFrame(rows)


@ANALYSES.register(
    "worked_examples",
    display=TITLE,
    places=("ROADMAP v2 Fig. 1(b), 10, 11 and 12, A.3", "Smooth-AP Sec. 4.1", "FastAP Fig. 4(c)"),
    trains=False,
)
def build(context: Context) -> Analysis:
    """Return the examples with the papers' statements about them."""
    calibrations = [*map(calibration, BATCHES)]
    found, bound = gap(BATCHES), plain_bound(BATCHES)
    at = delta(TAU, EPSILON)
    steep = float(slope(np.array([at]), TAU)[0])
    gains, bins = violations(), quantised()
    high, low = gains["s4 - s1"], gains["s7 - s3"]
    gradients = dict(zip(bins["bins"], bins["gradient"], strict=True))
    claims = [
        finding(
            "toy_gap",
            "ROADMAP v2 Fig. 1(b) and 10",
            "AP is 1 in every batch and not over all of them, and calibration sees it",
            f"Two batches of AP 1 have a gap of {found:.4f}; their calibration losses are "
            f"{listed(calibrations, '.3f')}.",
            all(each.perfect for each in BATCHES) and found > 0 and min(calibrations) > 0,
        ),
        finding(
            "worst_case",
            "ROADMAP v2 Fig. 11",
            "batches that follow one another as a whole reach the bound of Eq. 8",
            f"The gap is {found:.4f}, the bound {bound:.4f}.",
            math.isclose(found, bound, abs_tol=1e-12),
        ),
        finding(
            "delta_is_about_0.05",
            "ROADMAP v2 A.3",
            "epsilon = 0.01 gives a delta of about 0.05",
            f"tau ln((1 - epsilon) / epsilon) is {at:.4f} at tau = {TAU:g}.",
            round(at, 2) == 0.05,
        ),
        finding(
            "gradient_at_delta",
            "ROADMAP v2 A.3 and Fig. 12",
            "at delta the gradient of the sigmoid, by its own argument, is below epsilon",
            f"It is epsilon (1 - epsilon) = {steep * TAU:.4f}. Per unit of cosine, as in figure "
            f"12, it is {steep:.2f}, {100 * 4 * steep * TAU:.0f}% of its largest value.",
            steep * TAU < EPSILON,
        ),
        finding(
            "terms_are_unequal",
            "Smooth-AP Sec. 4.1",
            "of six violating terms that the triplet loss treats alike s4 - s1 is worth more AP "
            "than s7 - s3",
            f"There are {len(gains)}; exchanging the first adds {high:.4f} of AP, the last "
            f"{low:.4f}.",
            len(gains) == 6 and high > low,
        ),
        finding(
            "coarse_bins_keep_a_gradient",
            "FastAP Fig. 4(c)",
            "on a perfect ranking of a small margin fine bins give no gradient, coarse bins do",
            f"The largest gradient is {gradients[10]:.2g} with 10 bins and {gradients[80]:.2g} "
            "with 80.",
            bool(gradients[10] > 0.01 and gradients[80] < 1e-9),
        ),
    ]
    rows = [
        ["toy gap", "gap of two perfect batches", found, math.nan],
        ["worst case", "bound of Eq. 8", bound, math.nan],
        *(["calibration", f"batch {i}", x, math.nan] for i, x in enumerate(calibrations, 1)),
        ["delta", f"tau = {TAU:g}", at, steep],
        *(["AP gained by exchange", term, gain, math.nan] for term, gain in gains.items()),
        *(["FastAP", f"{count} bins", *rest] for count, *rest in bins.itertuples(index=False)),
    ]
    caption = (
        "ROADMAP's toy gap, worst case and delta; AP gained by exchanging the two of a violating "
        "term of Smooth-AP's example; FastAP's loss and largest gradient on a perfect ranking of a "
        "margin of 0.1."
    )
    headers = ["example", "setting", "value", "gradient"]
    lines = table(TITLE, caption, headers, [("", row) for row in rows])
    return Analysis(_draw(at, gains, bins), lines, claims)


def _draw(at: float, gains: dict[str, float], bins: pd.DataFrame) -> Drawing:
    x = np.linspace(-0.1, 0.1, 401)
    sigmoid = pd.DataFrame({"panel": "sigmoid", "x": x, "value": slope(x, TAU)})
    terms = pd.DataFrame({"term": gains.keys(), "value": gains.values(), "panel": "terms"})
    by_bins = bins.rename(columns={"bins": "x", "gradient": "value"}).assign(panel="bins")
    with styled():
        figure, ((first, second, third),) = new_figure(DOUBLE, 2.6, 1, 3)
        first.plot(x, sigmoid["value"], color=STYLES["sup_ap"].colour)
        for side in (-at, at):
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
    caption = (
        f"Left: derivative of the sigmoid at tau = {TAU:g}, with ROADMAP's delta = {at:.4f} on "
        "either side. Middle: AP gained by exchanging the two of each violating term of "
        "Smooth-AP's example, which a triplet loss treats alike. Right: largest gradient of "
        "FastAP on a perfect ranking of a margin of 0.1, by bins."
    )
    alt = (
        "A bell curve with two lines, bars of the AP gained by six exchanges, and a curve "
        f"of gradients: {listed(bins['gradient'], '.2g')} at {listed(BINS)} bins."
    )
    data = pd.concat([sigmoid, terms, by_bins], ignore_index=True)
    return Drawing(TITLE, caption, alt, figure, data)
