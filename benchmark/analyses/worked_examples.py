"""The small examples that the papers reason with, worked out: no network is trained."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, cells, finding, listed, numeric
from benchmark.analyses.context import Context
from benchmark.analyses.gap import Batch, average_precision, gap, plain_bound
from benchmark.analyses.toy_ranking import value_and_gradient
from benchmark.report.drawing import DOUBLE, FAINT, STYLES, Drawing, new_figure, styled
from benchmark.report.records import Finding
from benchmark.report.table import Section, Table, text_column

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


def violations() -> pd.DataFrame:
    """Return what exchanging the two of each violating term of Smooth-AP's example adds to AP.

    Columns: term (negative above positive, in the order of the paper), gain.
    """
    before, rows = _ap(ORDER), []
    for positive in POSITIVE:
        for negative in ORDER[: ORDER.index(positive)]:
            if negative not in POSITIVE:
                swapped = {positive: negative, negative: positive}
                after = _ap(tuple(swapped.get(each, each) for each in ORDER))
                rows.append({"term": f"s{negative} - s{positive}", "gain": after - before})
    return pd.DataFrame(rows)


def _ap(order: tuple[int, ...]) -> float:
    scores = -np.arange(len(order), dtype=float)
    positive = np.isin(order, POSITIVE)
    return average_precision(scores[positive], scores[~positive])


def quantised() -> pd.DataFrame:
    """Return FastAP's loss and its largest gradient on the perfect ranking, by bins."""
    from benchmark.losses import create_loss

    rows = []
    for bins in BINS:
        value, gradient = value_and_gradient(create_loss("fast_ap", bins=bins), NEAR, RELEVANT)
        rows.append({"bins": bins, "loss": value, "gradient": float(np.abs(gradient).max())})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Found:
    gap: float
    bound: float
    calibration: tuple[float, ...]
    terms: pd.DataFrame
    bins: pd.DataFrame


@ANALYSES.register(
    "worked_examples",
    display=TITLE,
    places=(
        "ROADMAP v2 Fig. 1(b), 10, 11 and 12, A.3",
        "Smooth-AP Sec. 4.1",
        "FastAP Fig. 4(c)",
    ),
    trains=False,
)
def build(context: Context) -> Analysis:
    """Return the examples with the papers' statements about them."""
    calibrations = tuple(map(calibration, BATCHES))
    found = _Found(gap(BATCHES), plain_bound(BATCHES), calibrations, violations(), quantised())
    return Analysis(_draw(found), _table(found), _claims(found))


def _claims(found: _Found) -> list[Finding]:
    at = delta(TAU, EPSILON)
    steep = float(slope(np.array([at]), TAU)[0])
    gains = dict(zip(found.terms["term"], found.terms["gain"], strict=True))
    high, low = gains["s4 - s1"], gains["s7 - s3"]
    coarse, fine = found.bins[found.bins["bins"] == 10], found.bins.iloc[[-1]]
    return [
        finding(
            "toy_gap",
            "ROADMAP v2 Fig. 1(b) and 10",
            "AP is 1 in every batch and not over all of them, and calibration sees it",
            f"Two batches of AP 1 have a gap of {found.gap:.4f}; their calibration losses are "
            f"{listed(found.calibration, '.3f')}.",
            all(each.perfect for each in BATCHES)
            and found.gap > 0
            and all(each > 0 for each in found.calibration),
        ),
        finding(
            "worst_case",
            "ROADMAP v2 Fig. 11",
            "batches that follow one another as a whole reach the bound of Eq. 8",
            f"The gap is {found.gap:.4f}, the bound {found.bound:.4f}.",
            math.isclose(found.gap, found.bound, abs_tol=1e-12),
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
            "the triplet loss treats six violating terms alike, of which s4 - s1 is worth more "
            "AP than s7 - s3",
            f"There are {len(gains)}; exchanging the first adds {high:.4f} of AP, the last "
            f"{low:.4f}.",
            len(gains) == 6 and high > low,
        ),
        finding(
            "coarse_bins_keep_a_gradient",
            "FastAP Fig. 4(c)",
            "on a perfect ranking of a small margin fine bins give no gradient, coarse bins do",
            f"The largest gradient is {coarse['gradient'].item():.2g} with 10 bins and "
            f"{fine['gradient'].item():.2g} with {BINS[-1]}.",
            bool(coarse["gradient"].item() > 0.01 and fine["gradient"].item() < 1e-9),
        ),
    ]


def _table(found: _Found) -> Table:
    columns = [
        text_column("example"),
        text_column("setting"),
        numeric("value"),
        numeric("gradient"),
    ]
    gaps = [
        cells("toy gap", "gap of two perfect batches", found.gap, math.nan),
        cells("worst case", "bound of Eq. 8", found.bound, math.nan),
        *(
            cells("calibration", f"batch {number}", value, math.nan)
            for number, value in enumerate(found.calibration, 1)
        ),
    ]
    at = delta(TAU, EPSILON)
    gaps.append(cells("delta", f"tau = {TAU:g}", at, float(slope(np.array([at]), TAU)[0])))
    terms = [
        cells("AP gained by exchange", str(row["term"]), row["gain"], math.nan)
        for row in found.terms.to_dict("records")
    ]
    bins = [
        cells("FastAP", f"{row['bins']:.0f} bins", row["loss"], row["gradient"])
        for row in found.bins.to_dict("records")
    ]
    caption = (
        "ROADMAP's toy gap, worst case and delta; AP gained when the two of a violating term of "
        "Smooth-AP's example are exchanged; FastAP's loss and largest gradient on a perfect "
        "ranking whose positives and negatives are 0.1 apart."
    )
    return Table(TITLE, caption, columns, [Section("", [*gaps, *terms, *bins])])


def _draw(found: _Found) -> Drawing:
    at = delta(TAU, EPSILON)
    differences = np.linspace(-0.1, 0.1, 401)
    steep = slope(differences, TAU)
    with styled():
        figure, grid = new_figure(DOUBLE, 2.6, 1, 3)
        first, second, third = grid[0]
        first.plot(differences, steep, color=STYLES["sup_ap"].colour)
        for side in (-at, at):
            first.axvline(side, color=FAINT, linewidth=0.8, linestyle="--")
        first.set_title("Sigmoid's gradient, ±δ", loc="left")
        first.set_xlabel("difference of scores (cosine)")
        first.set_ylabel("derivative (per cosine)")
        places = np.arange(len(found.terms))
        second.bar(places, found.terms["gain"], color=STYLES["smooth_ap"].colour)
        second.set_xticks(places, found.terms["term"], rotation=45, ha="right")
        second.set_title("AP gained by exchange", loc="left")
        second.set_ylabel("AP (0 to 1)")
        third.plot(found.bins["bins"], found.bins["gradient"], "o-", color=STYLES["fast_ap"].colour)
        third.set_xscale("log")
        third.set_xticks(BINS, [str(each) for each in BINS])
        third.minorticks_off()
        third.set_title("FastAP, perfect ranking", loc="left")
        third.set_xlabel("histogram bins")
        third.set_ylabel("largest gradient (per cosine)")
    caption = (
        f"Left: derivative of the sigmoid at tau = {TAU:g}, with ROADMAP's delta = {at:.4f} on "
        "either side. Middle: AP gained by exchanging the two of each violating term of "
        "Smooth-AP's example, which a triplet loss treats alike. Right: largest gradient of "
        "FastAP on a perfect ranking of a margin of 0.1, by bins."
    )
    alt = (
        "A bell curve with two lines, bars of the AP gained by six exchanges, and a curve "
        f"of gradients: {listed(found.bins['gradient'], '.2g')} at {listed(BINS)} bins."
    )
    data = pd.concat(
        [
            pd.DataFrame({"panel": "sigmoid", "x": differences, "value": steep}),
            found.terms.rename(columns={"gain": "value"}).assign(panel="terms"),
            found.bins.rename(columns={"bins": "x", "gradient": "value"}).assign(panel="bins"),
        ],
        ignore_index=True,
    )
    return Drawing(TITLE, caption, alt, figure, data)
