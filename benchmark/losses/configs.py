"""Names, facts and hyperparameters of the losses of the suite, without torch.

Reading a study needs no more, while importing torch takes seconds. The formulas stand in the other
files, under ``implements``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import PositiveFloat, PositiveInt

from benchmark.core.errors import Problem
from benchmark.core.options import defaults_of, option, options, problems
from benchmark.core.recipe import UNTRAINED
from benchmark.losses.library import CLASSES, part_problems

# What training and tables need to know of a loss. ``kind``: ranking, pair, proxy, triplets or none.
# ``stochastic``: the value depends on the generator. ``accepts_references``: separate reference
# embeddings (a memory) can be ranked instead of the batch itself.
FACTS = {"paper": "", "kind": "ranking", "stochastic": False, "accepts_references": True}
# Losses of pytorch-metric-learning under names of their own.
NAMED: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("pml_named.yaml").read_text("utf-8")
)
# What trials draw from, as multiples of the default.
TENFOLD = {"times": [0.1, 10.0]}
FOURFOLD = {"times": [0.25, 4.0]}

Config = TypeVar("Config", bound=type)


@dataclass(frozen=True)
class LossFacts:
    """What a loss declares, and its hyperparameters."""

    config: type
    display: str
    paper: str
    kind: str
    stochastic: bool
    accepts_references: bool

    def problems(self, params: Mapping[str, Any], where: str = "") -> list[Problem]:
        """Return what is wrong with hyperparameters."""
        found = problems(self.config, params, where)
        if found or self.config is not LibraryConfig:
            return found
        return part_problems("losses", {**defaults_of(self.config), **params}, where)

    def takes_references(self, params: Mapping[str, Any]) -> bool:
        """Say whether the loss with these hyperparameters can rank a memory."""
        known = {}
        if self.config is LibraryConfig:
            known = CLASSES["losses"].get(str(params.get("class")), {})
        return self.accepts_references and known.get("references", True)


DECLARED: dict[str, LossFacts] = {}  # by the name of the loss


def declare(name: str, *, display: str, **facts: Any) -> Callable[[Config], Config]:
    """Return a decorator that makes a Config that of the loss ``name``; ``facts`` as in FACTS."""

    def decorate(config: Config) -> Config:
        DECLARED[name] = LossFacts(config, display, **{**FACTS, **facts})
        return config

    return decorate


@declare(UNTRAINED, display="Not trained", paper="none", kind="none")
@options
class NoConfig:
    """No hyperparameters."""


@options
class RankingConfig:
    include_query: bool = option(
        True, help="count a query of the batch as its own positive, as the published code does"
    )


@declare("smooth_ap", display="SmoothAP", paper="Brown et al., ECCV 2020")
@options
class SmoothAPConfig(RankingConfig):
    tau: float = option(0.01, above=0.0, help="sigmoid temperature, cosine units", search=TENFOLD)


@declare("sup_ap", display="SupAP", paper="Ramzi et al., NeurIPS 2021")
@options
class SupAPConfig(SmoothAPConfig):
    rho: float = option(
        100.0,
        at_least=0.0,
        help="slope beyond delta, per unit of cosine",
        search=TENFOLD,
    )
    delta: float = option(0.05, at_least=0.0, help="score difference where the linear part begins")
    offset: float | None = option(
        None, help="value where the linear part begins; null: sigmoid(delta / tau) + start"
    )
    start: float = option(0.5, at_least=0.0, help="added to the sigmoid at and above a tie")


declare("smooth_ndcg", display="Smooth NDCG", paper="Ramzi et al., TPAMI 2025")(SmoothAPConfig)
declare("sup_ndcg", display="SupRank NDCG", paper="Ramzi et al., TPAMI 2025")(SupAPConfig)


@declare("approx_ndcg", display="ApproxNDCG", paper="Qin et al., Inf. Retr. 2010")
@options
class ApproxNDCGConfig:
    alpha: float = option(
        100.0,
        above=0.0,
        help="steepness of the sigmoid, per unit of cosine",
        search=TENFOLD,
    )
    include_query: bool = option(
        False, help="count a query of the batch as its own positive, as image retrieval does"
    )


@options
class RecallConfig(SmoothAPConfig):
    """What the losses of Recall@k share."""

    ks: list[PositiveInt] = option([1, 2, 4, 8, 16], min_length=1, help="the k of Recall@k")


@declare("smooth_recall", display="Smooth recall", paper="Ramzi et al., TPAMI 2025")
@options
class SmoothRecallConfig(RecallConfig):
    temperature: float = option(
        1.0, above=0.0, help="sigmoid temperature of k - rank", search=TENFOLD
    )


@declare("sup_recall", display="SupRank recall", paper="Ramzi et al., TPAMI 2025")
@options
class SupRecallConfig(SupAPConfig, SmoothRecallConfig):
    pass


@declare("recall_at_k", display="Recall@k surrogate", paper="Patel et al., CVPR 2022")
@options
class RecallAtKConfig(RecallConfig):
    include_query: bool = option(
        True, help="rank the query of the batch with the others, as the published code does"
    )
    temperatures: list[PositiveFloat] = option(
        [1.0], min_length=1, help="sigmoid temperature t_k of each k, or one for all, in ranks"
    )
    simix: bool = option(False, help="add virtual images between those of a class")


@declare("pnp", display="PNP", paper="Li et al., AAAI 2022")
@options
class PNPConfig(RankingConfig):
    variant: Literal["D_s", "D_q", "I_u", "I_b", "O"] = option("D_q", help="penalty of R")
    tau: float = option(0.01, above=0.0, help="sigmoid temperature, cosine units", search=TENFOLD)
    alpha: float = option(
        4.0, above=0.0, help="exponent of variant D_q", search={"linear": [1.0, 8.0]}
    )
    b: float = option(2.0, above=0.0, help="boundary of variant I_b")


@declare("fast_ap", display="FastAP", paper="Cakir et al., CVPR 2019")
@options
class FastAPConfig:
    bins: int = option(
        10,
        at_least=1,
        at_most=10_000,
        help="intervals of squared distance on [0, 4]",
        search=FOURFOLD,
    )


@declare("softbin_ap", display="SoftBinAP", paper="Revaud et al., ICCV 2019")
@options
class SoftBinAPConfig(RankingConfig):
    bins: int = option(
        20,
        at_least=2,
        at_most=10_000,
        help="bin centers on [lowest, 1], both ends included",
        search=FOURFOLD,
    )
    lowest: float = option(
        -1.0,
        at_least=-1.0,
        below=1.0,
        added=True,
        help="score of the last center, where all lower scores count; -1 in the paper, 0 by "
        "default in the authors' code",
    )
    query_weights: Literal["uniform", "class"] = option(
        "uniform",
        help="uniform: every query of the batch weighs the same; class: every class does",
    )
    ties: Literal["ignore", "aware"] = option(
        "ignore",
        help="aware: precision at the middle of each bin (tie-aware AP), instead of its end",
    )


@declare("blackbox_ap", display="BlackBoxAP", paper="Rolinek et al., CVPR 2020", stochastic=True)
@options
class BlackBoxAPConfig(RankingConfig):
    lambda_val: float = option(
        4.0,
        above=0.0,
        help="size of the step that perturbs the scores",
        search=TENFOLD,
    )
    margin: float = option(
        0.02,
        at_least=0.0,
        help="scale of what is added against the right ranking",
        search={"linear": [0.0, 0.1]},
    )
    fixed_margin: bool = option(
        False, help="add half the margin itself, not random amounts of that scale"
    )


@declare("calibration", display="Calibration", paper="Ramzi et al., NeurIPS 2021", kind="pair")
@options
class CalibrationConfig:
    alpha: float = option(
        0.9,
        at_least=-1.0,
        at_most=1.0,
        help="positives below it are pushed up",
        search={"linear": [0.7, 1.0]},
    )
    beta: float = option(
        0.6,
        at_least=-1.0,
        at_most=1.0,
        help="negatives above it are pushed down",
        search={"linear": [0.2, 0.8]},
    )
    reduction: Literal["pairs", "nonzero"] = option(
        "pairs", help="mean over all pairs of a query (paper), or non-zero pairs of the batch"
    )


@declare("roadmap", display="ROADMAP", paper="Ramzi et al., NeurIPS 2021")
@options
class RoadmapConfig(SupAPConfig, CalibrationConfig):
    lambda_: float = option(
        0.5,
        at_least=0.0,
        at_most=1.0,
        help="share of calibration",
        search={"linear": [0.1, 0.9]},
    )
    weights: list[float] | None = option(
        None, help="weights of SupAP and calibration; null: [1 - lambda_, lambda_]"
    )


@declare(
    "cosine_contrastive",
    display="Contrastive (cosine)",
    paper="Wang et al., CVPR 2020",
    kind="pair",
)
@options
class CosineContrastiveConfig:
    neg_margin: float = option(
        0.5,
        at_least=-1.0,
        at_most=1.0,
        help="cosine up to which negative pairs cost nothing",
        search={"linear": [0.0, 0.9]},
    )
    memory_weight: float = option(1.0, at_least=0.0, help="factor of the term of the memory")


@declare(
    "triplet_mined",
    display="Triplet (mined)",
    paper="Gordo et al., IJCV 2017",
    kind="triplets",
    accepts_references=False,
)
@options
class TripletMinedConfig:
    margin: float = option(0.1, above=0.0, help="required gap between squared distances")


@declare(
    "triplet_per_anchor",
    display="Triplet (one per anchor)",
    paper="Schroff et al., CVPR 2015; sampling of Roth et al., ICML 2020",
    stochastic=True,
    kind="pair",
)
@options
class TripletPerAnchorConfig:
    margin: float = option(
        0.2,
        above=0.0,
        help="required gap between squared distances",
        search=TENFOLD,
    )
    mining: Literal["softhard", "semihard"] = option(
        "softhard",
        added=True,
        help="rule by which the triplet of an anchor is drawn, as Roth's code has called it "
        "since 16 March 2020; before, softhard was its semi-hard",
    )


@declare(
    "proxy_nca_others",
    display="ProxyNCA (other proxies)",
    paper="Movshovitz-Attias et al., ICCV 2017",
    kind="proxy",
    accepts_references=False,
)
@options
class ProxyNCAOthersConfig:
    softmax_scale: float = option(
        9.0, above=0.0, help="multiplies the squared distances", search=TENFOLD
    )


@declare("pml", display="pytorch-metric-learning", paper="Musgrave et al., arXiv 2020", kind="pair")
@options
class LibraryConfig:
    class_: str = option("MultiSimilarityLoss", alias="class", help="a loss of the library")
    params: dict[str, Any] = option({}, help="parameters of the class")
    miner: dict[str, Any] | None = option(None, help="{class, params} of a miner")


def declare_named(name: str, entry: Mapping[str, Any]) -> None:
    """Declare a loss of ``NAMED``."""
    fields = [
        (key, type(limits["default"]), option(**limits))
        for key, limits in entry.get("options", {}).items()
    ]
    declare(
        name,
        display=entry["display"],
        paper=entry["paper"],
        kind=entry.get("kind", "pair"),
        stochastic=entry.get("stochastic", False),
        accepts_references=entry.get("references", True),
    )(make_dataclass("Config", fields, frozen=True, kw_only=True))


for _name, _entry in NAMED.items():
    declare_named(_name, _entry)
