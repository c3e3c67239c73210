"""What each AP loss puts in place of the step, and the derivative that comes with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Claim, judged
from benchmark.analyses.context import Context
from benchmark.analyses.shown import number, numeric, shades
from benchmark.report.figures.drawing import Drawing, new_figure
from benchmark.report.figures.style import DOUBLE, FAINT, LOOKS, styled
from benchmark.report.tables.table import Cell, Section, Table, text_column

SPAN = 0.15  # score differences drawn, cosine units
POINTS = 601  # odd, so that 0 is among them
PLACE = (
    0.3  # score of the positive: bins lie at fixed scores, so a histogram's answer depends on it
)
TAUS = (0.001, 0.01, 0.05)
RHOS = (0.0, 10.0, 100.0)
LAMBDAS = (0.05, 0.1, 0.2)
BINNED = {"fast_ap": 10, "softbin_ap": 20}
PANELS = ("SmoothAP", "SupAP", "soft bins", "BlackBoxAP")


def pair(loss: Any, difference: np.ndarray, place: float = PLACE) -> tuple[np.ndarray, np.ndarray]:
    """Returns 1 - AP (n,) of one positive at ``place`` and one negative ``difference`` above it, and the derivative of
    1 - AP by the negative's score, as the loss itself computes both."""
    import torch

    scores = torch.full((len(difference), 2), place, dtype=torch.float64)
    scores[:, 1] += torch.from_numpy(difference)
    scores.requires_grad_()
    values = loss.query_losses(scores, torch.tensor([[True, False]]).expand(len(difference), 2))
    values.sum().backward()
    return values.detach().numpy(), scores.grad[:, 1].numpy()


def step_of(loss: Any, difference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the function that stands for the step, and its derivative.

    With one positive and one negative AP = 1 / (1 + h), so the loss L gives h = L / (1 - L).
    """
    values, slopes = pair(loss, difference)
    return values / (1 - values), slopes / (1 - values) ** 2


def bin_share(scores: np.ndarray, centers: int, index: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the share of a score that falls to soft bin ``index`` of ``centers`` on [-1, 1], and its derivative
    (FastAP Eq. 8; listwise loss Eq. 7)."""
    width = 2.0 / (centers - 1)
    offset = scores - (1.0 - width * index)
    inside = np.abs(offset) < width
    return np.where(inside, 1.0 - np.abs(offset) / width, 0.0), np.where(
        inside, -np.sign(offset) / width, 0.0
    )


def interpolation(loss: Any, difference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the piecewise linear function in place of the step whose slopes BlackBoxAP uses, and these slopes.

    Its gradient on the negative is d(1 - AP) / d rank times such a slope; with the positive on rank 2 the first factor
    is 1/4. The function is the running integral of the slopes.
    """
    slopes = 4.0 * pair(loss, difference)[1]
    areas = (slopes[1:] + slopes[:-1]) / 2 * np.diff(difference)
    return np.concatenate([[0.0], np.cumsum(areas)]), slopes


def curves() -> pd.DataFrame:
    """Returns every curve: panel, base (loss), curve (words), x, value, derivative."""
    from benchmark.losses import create_loss

    grid = np.linspace(-SPAN, SPAN, POINTS)
    found = []

    def add(
        panel: str, base: str, words: str, x: np.ndarray, value: np.ndarray, slope: np.ndarray
    ) -> None:
        parts = {
            "panel": panel,
            "base": base,
            "curve": words,
            "x": x,
            "value": value,
            "derivative": slope,
        }
        found.append(pd.DataFrame(parts))

    for tau in TAUS:
        add(
            "SmoothAP",
            "smooth_ap",
            f"tau {tau:g}",
            grid,
            *step_of(create_loss("smooth_ap", tau=tau), grid),
        )
    for rho in RHOS:
        add("SupAP", "sup_ap", f"rho {rho:g}", grid, *step_of(create_loss("sup_ap", rho=rho), grid))
    for name, bins in BINNED.items():
        centers = bins + 1 if name == "fast_ap" else bins
        scores = np.linspace(-0.4, 0.4, POINTS)
        middle = (centers - 1) // 2
        for index in range(middle - 1, middle + 2):
            add(
                "soft bins",
                name,
                f"bin {index + 1} of {centers}",
                scores,
                *bin_share(scores, centers, index),
            )
    wide = np.linspace(-SPAN, SPAN, 10 * (POINTS - 1) + 1)
    for step in LAMBDAS:
        loss = create_loss("blackbox_ap", lambda_val=step, margin=0.0)
        add("BlackBoxAP", "blackbox_ap", f"lambda {step:g}", wide, *interpolation(loss, wide))
    return pd.concat(found, ignore_index=True)


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
def build(context: Context) -> Analysis:
    """Returns the functions as the losses compute them; nothing is trained."""
    data = curves()
    return Analysis(_draw(data), _table(), _claims())


def _probe() -> dict[str, tuple[float, float, float]]:
    """Returns by loss, at the defaults: the derivative on a negative 0.1 below, 0.02 above and 0.13 above."""
    from benchmark.losses import create_loss

    where = np.array([-0.1, 0.02, 0.13])
    found = {}
    for name in ("smooth_ap", "sup_ap", "fast_ap", "softbin_ap", "blackbox_ap"):
        loss = create_loss(name, margin=0.0) if name == "blackbox_ap" else create_loss(name)
        found[name] = tuple(pair(loss, where)[1])
    return found


def _claims() -> list[Claim]:
    from benchmark.losses import create_loss

    grid = np.linspace(-1.0, 1.0, 4001)
    sup, sup_slope = step_of(create_loss("sup_ap"), grid)
    smooth, _ = step_of(create_loss("smooth_ap"), grid)
    step = (grid >= 0).astype(float)
    far = np.array([0.13])
    smooth_far, sup_far = (
        step_of(create_loss(name), far)[1][0] for name in ("smooth_ap", "sup_ap")
    )
    narrow, wide = (_region(create_loss("smooth_ap", tau=tau), grid) for tau in (0.01, 0.1))
    lowest = float(sup_slope[grid > 0].min())
    return [
        Claim(
            "h_minus_above_step",
            "ROADMAP Fig. 3(b)",
            "H- lies on or above the step everywhere, a sigmoid does not",
            f"SupAP's function exceeds the step by at least {(sup - step).min():.2g} between -1 and 1; SmoothAP's "
            f"falls short by up to {(step - smooth).max():.2f}.",
            judged(bool((sup - step).min() >= -1e-12 and (step - smooth).max() > 0)),
        ),
        Claim(
            "gradient_beyond_the_region",
            "ROADMAP Fig. 3",
            "H- keeps a gradient where the sigmoid has none",
            f"0.13 above the positive the sigmoid's derivative is {smooth_far:.1e} and H-'s is {sup_far:.3g}; above "
            f"the positive H-'s is {lowest:.2g} or more.",
            judged(bool(smooth_far < 0.01 < lowest and sup_far > 1)),
        ),
        Claim(
            "small_tau_small_region",
            "Smooth-AP Fig. 2",
            "a small tau means a small operating region",
            f"The sigmoid's derivative exceeds 0.005 up to a difference of {narrow:.3f} at tau = 0.01 and of "
            f"{wide:.3f} at tau = 0.1.",
            judged(narrow < wide),
        ),
    ]


def _region(loss: Any, grid: np.ndarray) -> float:
    return float(np.abs(grid[step_of(loss, grid)[1] > 0.005]).max())


def _table() -> Table:
    from benchmark.losses import LOSSES as REGISTRY

    columns = [text_column("loss")]
    columns += [
        numeric("gradient on the negative", words)
        for words in ("0.1 below", "0.02 above", "0.13 above")
    ]
    rows = [
        [Cell(REGISTRY[name].display), *map(number, slopes)] for name, slopes in _probe().items()
    ]
    caption = (
        f"One positive at score {PLACE:g} and one negative: derivative of 1 - AP by the negative's score, at each "
        "loss's defaults (BlackBoxAP without noise). A positive value lowers the negative."
    )
    return Table("Gradients of the surrogates", caption, columns, [Section("", rows)])


def _draw(data: pd.DataFrame) -> Drawing:
    dashes = ("-", "--", ":")
    with styled():
        figure, grid = new_figure(DOUBLE, 3.7, 2, len(PANELS))
        for column, panel in enumerate(PANELS):
            part = data[data["panel"] == panel]
            upper, lower = grid[:, column]
            for base in part["base"].unique():
                own = part[part["base"] == base]
                names = own["curve"].unique()
                for words, tone, dash in zip(
                    names, shades(LOOKS[base].colour, len(names)), dashes, strict=True
                ):
                    curve = own[own["curve"] == words]
                    if panel == "soft bins":
                        tone, words = (
                            LOOKS[base].colour,
                            "FastAP, 10" if base == "fast_ap" else "SoftBinAP, 20",
                        )
                        dash = "-" if base == "fast_ap" else "--"
                    upper.plot(curve["x"], curve["value"], color=tone, linestyle=dash, label=words)
                    lower.plot(curve["x"], curve["derivative"], color=tone, linestyle=dash)
            if panel != "soft bins":
                upper.step([-SPAN, 0, SPAN], [0, 1, 1], where="post", color=FAINT, linewidth=0.7)
            handles, labels = upper.get_legend_handles_labels()
            unique = dict(zip(labels, handles, strict=True))
            upper.set_title(panel, loc="left")
            place = "upper center" if panel == "soft bins" else "upper left"
            upper.legend(
                unique.values(), unique.keys(), loc=place, handlelength=1.8, borderaxespad=0.1
            )
            lower.set_xlabel("score" if panel == "soft bins" else "s_negative - s_positive")
            if panel != "SupAP":
                upper.set_ylim(-0.05, 1.75)
            if panel == "SmoothAP":
                lower.set_yscale("symlog", linthresh=1)
        grid[0, 0].set_ylabel("in place of the step")
        grid[0, 2].set_ylabel("share of a score")
        grid[1, 0].set_ylabel("derivative (per cosine)")
    caption = (
        "What stands for the step (thin grey line), above, and its derivative, below. SmoothAP: the sigmoid at "
        "several tau. SupAP: H- at several rho, tau = 0.01, delta = 0.05. Soft bins: shares of a score in the three "
        "middle bins of FastAP (10 intervals) and SoftBinAP (20 centers). BlackBoxAP: the interpolation of the step "
        "whose slopes make its gradient, without noise, at several lambda. All but the bins are computed by the "
        "losses themselves."
    )
    slopes = _probe()
    alt = (
        "Eight panels: four functions and their derivatives. With a negative 0.13 above its positive the gradient is "
        f"{slopes['smooth_ap'][2]:.1e} for SmoothAP and {slopes['sup_ap'][2]:.2g} for SupAP."
    )
    return Drawing("Surrogates of the step and their derivatives", caption, alt, figure, data)
