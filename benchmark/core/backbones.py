"""Names of backbones, and facts of their weights, without importing timm, which takes seconds.

``make names`` writes ``backbones.json`` from the installed version of timm. Names of other versions
are looked up in timm.
"""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WeightFacts:
    """Facts of pretrained weights that a recipe must match.

    mean, std     of the pixels that the weights were trained on, per channel
    fixed_side    side of the input, if the network takes no other side, pixels
    patch         the side must be a multiple of this, if the network takes several sides, pixels
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    fixed_side: int | None
    patch: int | None = None


_LISTED = json.loads(Path(__file__).with_name("backbones.json").read_text("utf-8"))
ARCHITECTURES = frozenset(_LISTED["architectures"])
WEIGHTS: dict[str, WeightFacts] = {}  # by architecture.tag
for _group in _LISTED["weights"]:
    _facts = WeightFacts(
        tuple(_group["mean"]), tuple(_group["std"]), _group["fixed_side"], _group["patch"]
    )
    WEIGHTS |= dict.fromkeys(_group["backbones"], _facts)
