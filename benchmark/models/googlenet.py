"""GoogLeNet (Inception-v1) of torchvision in the shape of a timm backbone; timm has none."""

from typing import Any, ClassVar

import torch
from torch import nn

from benchmark.core.recipe import GOOGLENET_WEIGHTS

# Its weights were trained on pixels scaled to [-1, 1]; inputs come normalised as for all other
# networks.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class GoogLeNet(nn.Module):
    """The layers up to the last feature map (B, 1024, H/32, W/32), no auxiliary classifiers."""

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
            if name.startswith("aux"):
                continue
            if name == "avgpool":
                break
            self.add_module(name, layer)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        """Return the feature map (B, 1024, H', W') of images (B, 3, H, W), normalised by ImageNet's
        statistics."""
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
