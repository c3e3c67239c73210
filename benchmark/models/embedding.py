"""The embedding network: backbone -> pooling -> (LayerNorm) -> (linear head) -> unit length."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmark.core.errors import ConfigError
from benchmark.core.recipe_model import ModelConfig
from benchmark.core.results import Weights
from benchmark.models.layer_groups import rates_by_layer
from benchmark.models.pooling import NativePooling, Pooling


class EmbeddingModel(nn.Module):
    """Maps images (B, C, H, W) to embeddings (B, embedding_dim) with rows of length 1."""

    def __init__(self, config: ModelConfig, backbone: Any):
        """``backbone``: a network of timm, which says its width and what it gives."""
        super().__init__()
        self.config = config
        self.backbone = backbone
        prefix = getattr(backbone, "num_prefix_tokens", 0)
        if config.pooling == "token" and not prefix:
            raise ConfigError(
                "recipe section model",
                [
                    f"pooling 'token' needs a backbone with a class token, {config.backbone} has "
                    "none; use 'avg'"
                ],
            )
        native = config.pooling == "native"
        if native:
            if not hasattr(backbone, "forward_head"):
                problem = f"pooling 'native' needs a network of timm, not {config.backbone}"
                raise ConfigError("recipe section model", [f"{problem}; use 'avg'"])
            self.pooling: nn.Module = NativePooling(backbone)
        else:
            channels_last = getattr(backbone, "output_fmt", "NCHW") == "NHWC"
            self.pooling = Pooling(config.pooling, prefix, channels_last)
        width: Any = backbone.head_hidden_size if native else backbone.num_features
        self.norm = (
            nn.LayerNorm(width, elementwise_affine=False) if config.layer_norm else nn.Identity()
        )
        self.head = (
            nn.Identity()
            if config.embedding_dim is None
            else nn.Linear(width, config.embedding_dim)
        )
        self._width = width
        self.embedding_dim: int = config.embedding_dim or width
        self._initial_digest = _digest(backbone)
        self._parameters_in_all = sum(parameter.numel() for parameter in self.parameters())
        self.train()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return (B, embedding_dim), L2-normalised in at least float32.

        Without its backbone the model takes features (B, F) in place of images.
        """
        features = images
        if not isinstance(self.backbone, nn.Identity):
            features = self.pooling(self.backbone.forward_features(images))
        projected = self.head(self.norm(features))
        return F.normalize(projected if projected.dtype == torch.float64 else projected.float())

    def take_backbone(self) -> FrozenBackbone:
        """Return backbone and pooling; norm and head alone stay, which take their features."""
        taken = FrozenBackbone(self.backbone, self.pooling, self._initial_digest, self._width)
        self.backbone, self.pooling = nn.Identity(), nn.Identity()
        return taken

    def train(self, mode: bool = True) -> EmbeddingModel:
        """Set the mode; frozen batch norms keep their statistics whatever the mode."""
        super().train(mode)
        if self.config.freeze_batch_norm:
            for layer in self._batch_norms():
                layer.eval()
        return self

    def parameter_groups(
        self, head_lr_multiplier: float = 1.0, layer_decay: float = 1.0
    ) -> list[dict[str, Any]]:
        """Return what trains: the backbone, by layers where rates decay, then pooling and head."""
        own = [*self.pooling.parameters(), *self.head.parameters()]
        head = {
            "params": [parameter for parameter in own if parameter.requires_grad],
            "lr_multiplier": head_lr_multiplier,
        }
        groups = [*rates_by_layer(self.backbone, layer_decay), head]
        return [group for group in groups if group["params"]]

    def provenance(self) -> Weights:
        """Return what the network started from: backbone, weights, digest of its first weights."""
        weights = self.config.backbone if self.config.pretrained else "from scratch"
        if self.config.checkpoint is not None:
            weights = "checkpoint"
        return Weights(self.config.backbone, weights, self._initial_digest, self._parameters_in_all)

    def _batch_norms(self) -> list[nn.Module]:
        return [
            layer
            for layer in self.backbone.modules()
            if isinstance(layer, nn.modules.batchnorm._BatchNorm)
        ]


class FrozenBackbone(nn.Module):
    """Maps images (B, C, H, W) to features (B, F), always in evaluation mode.

    ``digest`` is that of its weights, ``width`` is F.
    """

    def __init__(self, backbone: Any, pooling: nn.Module, digest: str, width: int):
        super().__init__()
        self.backbone, self.pooling, self.digest = backbone, pooling, digest
        self.width = width
        self.eval()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the pooled features, before LayerNorm and head."""
        return self.pooling(self.backbone.forward_features(images))


def _digest(module: nn.Module) -> str:
    """Return a digest (16 hex digits) of all parameters and buffers."""
    content = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        content.update(name.encode())
        content.update(value.detach().cpu().contiguous().numpy().tobytes())
    return content.hexdigest()[:16]
