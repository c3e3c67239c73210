"""What each AP loss puts in place of the step, and the derivative that comes with it."""

from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, finding, shades, table
from benchmark.analyses.context import Context
from benchmark.analyses.gap import value_and_gradient
from benchmark.report.drawing import DOUBLE, FAINT, STYLES, Drawing, new_figure, styled
from benchmark.report.labels import loss_name
from benchmark.report.records import Finding

TITLE = "Surrogates of the step and their derivatives"
SPAN = 0.15  # score differences drawn, cosine units
POINTS = 601  # odd, so that 0 is among them
# Score of the positive: bins lie at fixed scores, so a histogram's answer depends on it.
POSITIVE = 0.3
# Smooth-AP's figure 2 names two relaxations and prints no formulas: these are the hinge, which its
# section 4.1 calls linear, and the exponential, both 1 at a tie and so never below the step.
WIDTH = 0.1  # ours: where the hinge reaches 0
SHIFTS = ((0.8, 0.5), (0.2, -0.1))  # of s4 - s1 in section 4.1
BINNED = {"fast_ap": 10, "softbin_ap": 20}
PANELS = ("SmoothAP", "relaxations", "SupAP", "soft bins", "BlackBoxAP")
PROBES = {"0.1 below": -0.1, "0.02 above": 0.02, "0.13 above": 0.13}

Curve = tuple[np.ndarray, np.ndarray]  # values (n,) and derivatives (n,)


def pair(loss: Any, difference: np.ndarray, positive: float = POSITIVE) -> Curve:
    """Return 1 - AP (n,) of one positive and one negative ``difference`` above it, and its slope.

    The slope is the derivative with respect to the negative's score. The loss computes both.
    """
    scores = np.stack([np.full(len(difference), positive), positive + difference], axis=1)
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
    slopes = 4.0 * pair(loss, difference)[1]
    areas = (slopes[1:] + slopes[:-1]) / 2 * np.diff(difference)
    return np.concatenate([[0.0], np.cumsum(areas)]), slopes


def linear(difference: np.ndarray) -> Curve:
    """Return the hinge (1 + x / WIDTH)+ and its derivative."""
    above = difference > -WIDTH
    return np.where(above, 1 + difference / WIDTH, 0.0), np.where(above, 1 / WIDTH, 0.0)


def exponential(difference: np.ndarray) -> Curve:
    """Return exp(x / WIDTH) and its derivative."""
    value = np.exp(difference / WIDTH)
    return value, value / WIDTH


def curves() -> pd.DataFrame:
    """Return every curve: panel, base (loss), curve (words), x, value, derivative."""
    from benchmark.losses import create_loss

    grid = np.linspace(-SPAN, SPAN, POINTS)
    wide = np.linspace(-SPAN, SPAN, 10 * (POINTS - 1) + 1)
    scores = np.linspace(-0.4, 0.4, POINTS)
    found: list[tuple[str, str, str, np.ndarray, Curve]] = []
    for tau in (0.001, 0.01, 0.05):
        curve = step_of(create_loss("smooth_ap", tau=tau), grid)
        found.append(("SmoothAP", "smooth_ap", f"tau {tau:g}", grid, curve))
    found.append(("relaxations", "relaxation", "linear", grid, linear(grid)))
    found.append(("relaxations", "relaxation", "exponential", grid, exponential(grid)))
    for rho in (0.0, 10.0, 100.0):
        curve = step_of(create_loss("sup_ap", rho=rho), grid)
        found.append(("SupAP", "sup_ap", f"rho {rho:g}", grid, curve))
    for name, centers in (("fast_ap", 11), ("softbin_ap", 20)):
        for index in range((centers - 1) // 2 - 1, (centers - 1) // 2 + 2):
            curve = bin_share(scores, centers, index)
            found.append(("soft bins", name, f"bin {index + 1} of {centers}", scores, curve))
    for step in (0.05, 0.1, 0.2):
        curve = interpolation(create_loss("blackbox_ap", lambda_val=step, margin=0.0), wide)
        found.append(("BlackBoxAP", "blackbox_ap", f"lambda {step:g}", wide, curve))
    names = ("panel", "base", "curve", "x", "value", "derivative")
    parts = [dict(zip(names, (*rest, *curve), strict=True)) for *rest, curve in found]
    return pd.concat(map(pd.DataFrame, parts), ignore_index=True)


@ANALYSES.register(
    "surrogates",
    display=TITLE,
    places=(
        "Smooth-AP Fig. 2",
        "ROADMAP Fig. 3",
        "FastAP Eq. 8",
        "listwise loss Eq. 7",
        "BlackBoxAP",
    ),
    trains=False,
)
def build(context: Context) -> Analysis:
    """Return the functions as the losses compute them; nothing is trained."""
    from benchmark.losses import create_loss

    losses = {name: create_loss(name) for name in ("smooth_ap", "sup_ap", *BINNED)}
    losses["blackbox_ap"] = create_loss("blackbox_ap", margin=0.0)
    where = np.array(list(PROBES.values()))
    slopes = {name: pair(loss, where)[1] for name, loss in losses.items()}
    caption = (
        f"One positive at score {POSITIVE:g} and one negative: derivative of 1 - AP with respect "
        "to the negative's score, at each loss's defaults (BlackBoxAP without noise). A positive "
        "value lowers the negative."
    )
    headers = ["loss", *(("gradient on the negative", words) for words in PROBES)]
    rows = [("", [loss_name(name), *values]) for name, values in slopes.items()]
    lines = table("Gradients of the surrogates", caption, headers, rows)
    return Analysis(_draw(curves(), slopes), lines, _claims())


def _claims() -> list[Finding]:
    from benchmark.losses import create_loss

    grid = np.linspace(-1.0, 1.0, 4001)
    step = (grid >= 0).astype(float)
    smooth_ap, sup_ap = create_loss("smooth_ap"), create_loss("sup_ap")
    sup, sup_slope = step_of(sup_ap, grid)
    above, below = (sup - step).min(), (step - step_of(smooth_ap, grid)[0]).max()
    smooth_far, sup_far = (step_of(loss, np.array([0.13]))[1][0] for loss in (smooth_ap, sup_ap))
    lowest = float(sup_slope[grid > 0].min())
    narrow, wide = (
        float(np.abs(grid[step_of(create_loss("smooth_ap", tau=tau), grid)[1] > 0.005]).max())
        for tau in (0.01, 0.1)
    )
    before, after = np.array(SHIFTS).T
    sigmoid = step_of(smooth_ap, before)[0] - step_of(smooth_ap, after)[0]
    drops = {of.__name__: of(before)[0] - of(after)[0] for of in (linear, exponential)}
    drops["sigmoid"] = sigmoid
    told = "; ".join(f"the {name} by {a:.3g} and {b:.3g}" for name, (a, b) in drops.items())
    return [
        finding(
            "h_minus_above_step",
            "ROADMAP Fig. 3(b)",
            "H- lies on or above the step everywhere, a sigmoid does not",
            f"SupAP's function exceeds the step by at least {above:.2g} between -1 and 1; "
            f"SmoothAP's falls short by up to {below:.2f}.",
            bool(above >= -1e-12 and below > 0),
        ),
        finding(
            "gradient_beyond_the_region",
            "ROADMAP Fig. 3",
            "H- keeps a gradient where the sigmoid has none",
            f"0.13 above the positive the sigmoid's derivative is {smooth_far:.1e} and H-'s is "
            f"{sup_far:.3g}; above the positive H-'s is {lowest:.2g} or more.",
            bool(smooth_far < 0.01 < lowest and sup_far > 1),
        ),
        finding(
            "only_the_sigmoid_rewards_a_change_of_order",
            "Smooth-AP Fig. 2 and Sec. 4.1",
            "a linear relaxation counts s4 - s1 going from 0.8 to 0.5 like going from 0.2 to -0.1, "
            "which changes the order; a sigmoid counts the second alone",
            f"The two shifts lower {told} (tau = 0.01; the others of width {WIDTH:g}).",
            bool(np.isclose(*drops["linear"]) and sigmoid[0] < 0.01 and sigmoid[1] > 0.99),
        ),
        finding(
            "small_tau_small_region",
            "Smooth-AP Fig. 2",
            "a small tau means a small operating region",
            f"The sigmoid's derivative exceeds 0.005 up to a difference of {narrow:.3f} at tau = "
            f"0.01 and of {wide:.3f} at tau = 0.1.",
            narrow < wide,
        ),
    ]


def _draw(data: pd.DataFrame, slopes: dict[str, np.ndarray]) -> Drawing:
    with styled():
        figure, grid = new_figure(DOUBLE, 3.7, 2, len(PANELS))
        for panel, (upper, lower) in zip(PANELS, grid.T, strict=True):
            _draw_panel(upper, lower, panel, data[data["panel"] == panel])
        grid[0, 0].set_ylabel("in place of the step")
        grid[0, PANELS.index("soft bins")].set_ylabel("share of a score")
        grid[1, 0].set(ylabel="derivative (per cosine)")
        grid[1, 0].set_yscale("symlog", linthresh=1)
        for axes, top in zip(grid[0], (1.75, 6.3, None, 1.75, 1.75), strict=True):
            axes.set_ylim(None if top is None else -0.05, top)
    caption = (
        "Above: what stands for the step (thin grey line), against the score of the negative less "
        "that of the positive; below: its derivative. SmoothAP: the sigmoid at several tau. Beside "
        "it a linear and an exponential relaxation (the paper prints no formulas; ours are 1 at a "
        f"tie, of width {WIDTH:g}). SupAP: H- at several rho, tau = 0.01, delta = 0.05. Soft bins: "
        "shares of a score in the three middle bins of FastAP (10 intervals) and SoftBinAP (20 "
        "centers). BlackBoxAP: the interpolation of the step whose slopes make its gradient, "
        "without noise, at several lambda. The losses compute all but relaxations and bins."
    )
    alt = (
        "Ten panels: five kinds of functions and their derivatives. With a negative 0.13 above its "
        f"positive the gradient is {slopes['smooth_ap'][2]:.1e} for SmoothAP and "
        f"{slopes['sup_ap'][2]:.2g} for SupAP."
    )
    return Drawing(TITLE, caption, alt, figure, data)


def _draw_panel(upper: Any, lower: Any, panel: str, data: pd.DataFrame) -> None:
    """Draw the functions of one panel above, and their derivatives below."""
    soft = panel == "soft bins"
    for base, own in data.groupby("base", sort=False):
        colour = STYLES[str(base)].colour if base in STYLES else FAINT
        tones = shades(colour, own["curve"].nunique())
        by_curve = own.groupby("curve", sort=False)
        for (words, curve), tone, dash in zip(by_curve, tones, ("-", "--", ":"), strict=False):
            look: dict[str, Any] = {"color": tone, "linestyle": dash, "label": words}
            if soft:  # one look for the bins of a loss, which the legend names once
                look = {"color": colour, "linestyle": "-" if base == "fast_ap" else "--"}
                if dash == "-":
                    look["label"] = f"{loss_name(str(base))}, {BINNED[str(base)]}"
            upper.plot(curve["x"], curve["value"], **look)
            lower.plot(curve["x"], curve["derivative"], **look)
    if not soft:
        upper.step([-SPAN, 0, SPAN], [0, 1, 1], where="post", color=FAINT, linewidth=0.7)
    corner = "upper center" if soft else "upper left"
    upper.legend(loc=corner, handlelength=1.8, borderaxespad=0.1)
    upper.set_title(panel)
    lower.set_xlabel("score" if soft else "s_neg - s_pos")
    for axes in (upper, lower):
        axes.set_xticks([-0.3, 0, 0.3] if soft else [-0.1, 0, 0.1])
