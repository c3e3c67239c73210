"""Names of backbones, and what their weights were trained on, without timm.

Importing timm takes seconds. ``make names`` writes ``backbones.json`` from the installed version;
timm itself knows those of another one.
"""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WeightFacts:
    """What has to be known of pretrained weights before a recipe for them can be written.

    mean, std     of the pixels that the weights were trained on, per channel
    fixed_side    side that they were trained at where timm calls it fixed, pixels
    patch         where the network follows another side, which must be a multiple of this, pixels
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
