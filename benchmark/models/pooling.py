"""From a feature map or a token sequence to one vector per image."""

from typing import Any

import torch
from torch import nn

GEM_POWER = 3.0
GEM_FLOOR = 1e-6


class Pooling(nn.Module):
    """Pools (B, C, H, W) maps or (B, N, C) tokens to (B, C).

    ``prefix`` tokens (class token and the like) are left out of avg, max and gem; ``token`` takes
    the first. GeM is the generalised mean with a learnt power, from 3 (Radenovic et al., PAMI
    2019).
    """

    def __init__(self, kind: str, prefix: int = 0, channels_last: bool = False):
        super().__init__()
        self.kind, self.prefix, self.channels_last = kind, prefix, channels_last
        if kind == "gem":
            self.power = nn.Parameter(torch.tensor(GEM_POWER))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return (B, C)."""
        if self.kind == "token":
            return features[:, 0]
        dims = (1,) if features.ndim == 3 else (1, 2) if self.channels_last else (2, 3)
        if features.ndim == 3:
            features = features[:, self.prefix :]
        if self.kind == "max":
            return features.amax(dim=dims)
        if self.kind == "gem":
            return (
                features.clamp(min=GEM_FLOOR).pow(self.power).mean(dim=dims).pow(1.0 / self.power)
            )
        return features.mean(dim=dims)

    def extra_repr(self) -> str:
        """Show the kind."""
        return self.kind


class NativePooling(nn.Module):
    """Pools as the backbone itself does it before its classifier, normalisation included."""

    def __init__(self, backbone: Any):
        super().__init__()
        self._of = [backbone]  # in a list: its parameters are the backbone's, not this module's

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return (B, C)."""
        return self._of[0].forward_head(features, pre_logits=True)
