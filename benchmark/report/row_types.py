"""The rows of a study's frames: their columns, as far as the report reads them one by one.

Each class has the columns of a frame of ``StudyResults``. Scores and differences lie in [0, 1].
"""


class Placed:
    """What was run where."""

    dataset: str
    setting: str
    batch_size: int
    loss: str


class RunRow(Placed):
    """A run of ``runs``; its options are those of its setting."""

    backbone: str
    options: tuple[str, ...]
    status: str
    reason: str


class ScoreRow(Placed):
    """A mean of ``summary`` over ``n`` seeds; ``mark`` is that of a table's cell."""

    split: str
    metric: str
    mean: float
    sd: float
    n: int
    mark: str


class RankedRow(ScoreRow):
    """A mean with its rank among others."""

    rank: float


class DivergenceRow(Placed):
    """How many of a cell's ended runs diverged, with the interval of the rate."""

    n_diverged: float
    n_ended: float
    low: float
    high: float
    diverges: bool


class CostRow(Placed):
    """What training a loss costs, means over seeds."""

    peak_gpu_mb: float
    peak_rss_mb: float


class NoiseRow(Placed):
    """What a source of chance adds to the variance of ``runs`` runs."""

    split: str
    metric: str
    source: str
    share: float
    low: float
    high: float
    runs: int


class PairRow(Placed):
    """The test of a loss ``against`` another, over ``n`` seeds; ``lost``: the one that diverges."""

    split: str
    metric: str
    against: str
    step: str
    difference: float
    ci_low: float
    ci_high: float
    p_holm: float
    significant: bool
    lost: str
    n: int
    note: str
    family: str
    family_size: float


class AverageRankRow(Placed):
    """The average rank of a loss over datasets, beside the ``best`` one."""

    metric: str
    datasets: int
    p_friedman: float
    critical: float
    best: str
    significant: bool


class BudgetRow(Placed):
    """A loss after so many trials of its setting, tested against its published setting."""

    trials: int
    n: int
    mean: float
    ci_low: float
    ci_high: float
    rank: float
    rank_low: float
    rank_high: float
    mark: str
    difference: float
    ci_low_of_test: float
    ci_high_of_test: float
    p_holm: float
    significant: bool
    seconds: float


class OrderRow(Placed):
    """How often the order of the losses returns when one kind of chance is drawn again."""

    trials: int
    source: str


class OptionRow(Placed):
    """The share of an option in what trials differ by; ``named``: the first of its loss."""

    option: str
    named: bool


class SweptRow(PairRow):
    """The mean ``score`` of a setting of a sweep, and its test against the default."""

    Index: int
    title: str
    option: str
    value: str
    score: float
    score_sd: float
    score_n: int
    is_default: bool
    claims: tuple[str, ...]


class VerdictRow(Placed):
    """A row of ``verdicts.csv``: ``VERDICT`` declares its columns. Scores are in points."""

    source: str
    table: str
    row_label: str
    line: int
    backbone: str
    split: str
    metric: str
    verdict: str
    direction: str
    reason: str
    interim: bool
    stands: bool | None
    changes_under: str
    tip_laboratory: float
    tip_ratio: float


class PrintedRow(VerdictRow):
    """A printed number beside ours; ``instead`` stands where it has no verdict."""

    Index: tuple[str, int]
    instead: str
    selection: str
    assumed: bool
    ours_mean: float
    ours_sd: float
    ours_n: float
    difference: float
    ci_low: float
    ci_high: float
    other_mean: float
    other_verdict: str


class OutcomeRow:
    """What came of the numbers of a printed table."""

    source: str
    table: str
    drifted: int
    standing: int
    undecidable: int
    unjudged: int
    median: float
    drifts: list[str]


class ClaimRow:
    """A row of ``claims.csv``: one reading of a claim, with the part that decides."""

    claim: str
    reading: str
    paper: str
    stated_in: str
    sentence: str
    condition: str
    verdict: str
    reason: str
    outside: str
    unit: str
    estimate: float
    ci_low: float
    ci_high: float
    p: float
    parts: float
    parts_run: float
    parts_holding: float
