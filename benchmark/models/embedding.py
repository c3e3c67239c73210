"""The embedding network: backbone -> pooling -> (LayerNorm) -> (linear head) -> unit length."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import FEATURES, ModelConfig
from benchmark.core.results import Weights

GEM_POWER = 3.0
GEM_FLOOR = 1e-6


class GivenFeatures(nn.Identity):
    """The backbone of a head whose inputs are features (B, F), F = ``num_features``."""

    def __init__(self, width: int):
        super().__init__()
        self.num_features = width


class EmbeddingModel(nn.Module):
    """Maps images (B, C, H, W) to embeddings (B, embedding_dim) with rows of length 1."""

    def __init__(self, config: ModelConfig, backbone: Any):
        """``backbone``: a network of timm, which says its width and what it gives."""
        super().__init__()
        self.config = config
        self.backbone = backbone
        prefix = getattr(backbone, "num_prefix_tokens", 0)
        native = config.pooling == "native"
        problem = ""
        if config.pooling == "token" and not prefix:
            problem = f"'token' needs a backbone with a class token, {config.backbone} has none"
        elif native and not hasattr(backbone, "forward_head"):
            problem = f"'native' needs a network of timm, not {config.backbone}"
        if problem:
            raise ConfigError("recipe section model", [f"pooling {problem}; use 'avg'"])
        channels_last = getattr(backbone, "output_fmt", "NCHW") == "NHWC"
        self.pooling: nn.Module = (
            NativePooling(backbone) if native else Pooling(config.pooling, prefix, channels_last)
        )
        width: Any = backbone.head_hidden_size if native else backbone.num_features
        dim = config.embedding_dim
        self.norm: nn.Module = nn.Identity()
        if config.layer_norm:
            self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.head = nn.Identity() if dim is None else nn.Linear(width, dim)
        if isinstance(self.head, nn.Linear) and config.head_init == "he_normal":
            nn.init.kaiming_normal_(
                self.head.weight,
                nonlinearity="relu",
            )
            nn.init.zeros_(self.head.bias)
        self._width = width
        self.embedding_dim: int = dim or width
        self._initial_digest = _digest(backbone)
        self._parameters_in_all = sum(parameter.numel() for parameter in self.parameters())
        self.train()

    def fit_positions(self, side: int) -> None:
        """Bring learned positions to images of ``side`` pixels, before they are trained.

        A network that follows the size of its images would bring them there in each step, and on
        a GPU the gradient of that is not deterministic.
        """
        learned = getattr(self.backbone, "pos_embed", None)
        if learned is not None and hasattr(self.backbone, "set_input_size"):
            self.backbone.set_input_size(img_size=(side, side))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return (B, embedding_dim), L2-normalised in at least float32.

        Without its backbone the model takes features (B, F) in place of images.
        """
        features = images
        if not isinstance(self.backbone, nn.Identity):
            features = self.pooling(self.backbone.forward_features(images))
        projected = self.head(self.norm(features))
        if projected.dtype != torch.float64:
            projected = projected.float()
        return F.normalize(projected)

    def take_backbone(self) -> FrozenBackbone:
        """Return backbone and pooling; norm and head alone stay, which take their features."""
        taken = FrozenBackbone(self.backbone, self.pooling, self._initial_digest, self._width)
        self.backbone = nn.Identity()
        self.pooling = nn.Identity()
        return taken

    def train(self, mode: bool = True) -> EmbeddingModel:
        """Set the mode; frozen batch norms keep their statistics whatever the mode."""
        super().train(mode)
        if self.config.freeze_batch_norm:
            for layer in self.backbone.modules():
                if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                    layer.eval()
        return self

    def parameter_groups(
        self, head_lr_multiplier: float = 1.0, layer_decay: float = 1.0
    ) -> list[dict[str, Any]]:
        """Return what trains: the backbone, by layers where rates decay, then pooling and head."""
        parameters = [*self.pooling.parameters(), *self.head.parameters()]
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        head = {"params": trained, "lr_multiplier": head_lr_multiplier}
        groups = [*rates_by_layer(self.backbone, layer_decay), head]
        return [group for group in groups if group["params"]]

    def provenance(self) -> Weights:
        """Return what the network started from: backbone, weights, digest of its first weights."""
        weights = self.config.backbone if self.config.pretrained else "from scratch"
        if self.config.checkpoint is not None:
            weights = "checkpoint"
        if self.config.backbone == FEATURES:
            weights = "those behind the features"
        return Weights(self.config.backbone, weights, self._initial_digest, self._parameters_in_all)


class FrozenBackbone(nn.Module):
    """Maps images (B, C, H, W) to features (B, F), always in evaluation mode.

    ``digest`` is the digest of its weights, ``width`` is F.
    """

    def __init__(self, backbone: Any, pooling: nn.Module, digest: str, width: int):
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
        self.digest = digest
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


def rates_by_layer(backbone: Any, decay: float) -> list[dict[str, Any]]:
    """Return trainable parameters by layer, first layers first, with multiples of the rate.

    The groups are timm's (stem, blocks, last normalisation); the last one learns at the full rate,
    each one before it ``decay`` times as fast (Bao et al., ICLR 2022). Raise ConfigError for a
    backbone without groups.
    """
    parameters = {name: p for name, p in backbone.named_parameters() if p.requires_grad}
    if decay == 1.0 or not parameters:
        return [{"params": [*parameters.values()], "lr_multiplier": 1.0}]
    if not hasattr(backbone, "group_matcher"):
        message = f"layer_decay  {type(backbone).__name__} has no groups of layers; give 1"
        raise ConfigError("recipe section optimizer", [message])
    from timm.models import group_parameters

    layers = group_parameters(backbone, backbone.group_matcher(coarse=False), reverse=True)
    numbers = sorted({layers[name] for name in parameters})
    groups = []
    for position, number in enumerate(numbers):
        of_layer = [p for name, p in parameters.items() if layers[name] == number]
        multiplier = decay ** (len(numbers) - 1 - position)
        groups.append({"params": of_layer, "lr_multiplier": multiplier})
    return groups


class Pooling(nn.Module):
    """Pools (B, C, H, W) maps or (B, N, C) tokens to (B, C).

    ``prefix`` tokens (class token and the like) are left out of avg, max and gem; ``token`` takes
    the first. GeM is the generalised mean with a learnt power, from 3 (Radenovic et al., PAMI
    2019).
    """

    def __init__(self, kind: str, prefix: int = 0, channels_last: bool = False):
        super().__init__()
        self.kind = kind
        self.prefix = prefix
        self.channels_last = channels_last
        if kind == "gem":
            self.power = nn.Parameter(torch.tensor(GEM_POWER))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return (B, C)."""
        if self.kind == "token":
            return features[:, 0]
        dims: tuple[int, ...] = (1, 2) if self.channels_last else (2, 3)
        if features.ndim == 3:
            dims = (1,)
            features = features[:, self.prefix :]
        if self.kind == "max":
            return features.amax(dim=dims)
        if self.kind == "gem":
            powers = features.clamp(min=GEM_FLOOR).pow(self.power)
            return powers.mean(dim=dims).pow(1.0 / self.power)
        return features.mean(dim=dims)


class NativePooling(nn.Module):
    """Pools as the backbone itself does it before its classifier, normalisation included."""

    def __init__(self, backbone: Any):
        super().__init__()
        self._of = [backbone]  # in a list: its parameters are the backbone's, not this module's

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return (B, C)."""
        return self._of[0].forward_head(features, pre_logits=True)
