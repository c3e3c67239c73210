"""What is used of torchvision: it imports beside any torch, and its GoogLeNet, which timm lacks.

timm imports torchvision, whose wheels are built for CUDA: beside a CPU-only torch the library of
operators is not loaded and the import fails on two of their schemas. No model here calls them, so
declaring the schemas is enough; where the library loads, nothing is touched.
"""

import contextlib
import importlib.util
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from benchmark.core.recipe import GOOGLENET_WEIGHTS

# GoogLeNet's weights were trained on pixels scaled to [-1, 1]; inputs come normalised as for all
# other networks.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[torch.library.Library] = []


def prepare_torchvision() -> bool:
    """Declare ``torchvision::nms`` and ``qnms`` if they are missing; returns whether it had to."""
    spec = importlib.util.find_spec("torchvision")
    loads = _declared or hasattr(torch.ops.torchvision, "nms")
    if not loads and spec is not None and spec.origin is not None:
        for path in sorted(Path(spec.origin).parent.glob("_C*")):
            with contextlib.suppress(OSError):
                torch.ops.load_library(str(path))
    if loads or hasattr(torch.ops.torchvision, "nms"):
        return False
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(name + _SCHEMA)
    _declared.append(library)  # the schemas vanish with the object
    return True


class GoogLeNet(nn.Module):
    """Inception-v1 in the shape of a timm backbone, without auxiliary classifiers."""

    num_features = 1024
    default_cfg: ClassVar[dict[str, Any]] = {"classifier": "fc", "first_conv": "conv1.conv"}

    def __init__(self, tag: str | None = None):
        """Make the network with the weights of ``tag``, maybe downloaded, or with fresh ones."""
        super().__init__()
        from torchvision.models import googlenet

        options = {"weights": None, "aux_logits": False, "init_weights": True}
        network = googlenet(**options if tag is None else {"weights": GOOGLENET_WEIGHTS[tag]})
        self.rescale = _Rescale()
        for name, layer in network.named_children():
            if name == "avgpool":
                break
            if not name.startswith("aux"):
                self.add_module(name, layer)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        """Return the last feature map (B, 1024, H/32, W/32) of normalised images (B, 3, H, W)."""
        features = images
        for layer in self.children():
            features = layer(features)
        return features


class _Rescale(nn.Module):
    """From pixels normalised by ImageNet's mean and sd to pixels in [-1, 1]."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scale = images.new_tensor(STD).view(3, 1, 1) / 0.5
        shift = (images.new_tensor(MEAN).view(3, 1, 1) - 0.5) / 0.5
        return images * scale + shift
