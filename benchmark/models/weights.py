"""Weights from a file or another network, fitted to a backbone without classifier."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmark.core.errors import ConfigError, DataError
from benchmark.models.packaged import PREFIX, read_packaged

WHERE = "recipe section model"
PARALLEL_PREFIX = "module."
EMBEDDING = "embedding."  # before the names of a linear head's weights, beside the backbone's
POWER = "pooling.power"  # of GeM
# Names in the checkpoints of SoftBinAP's authors (naver/deep-image-retrieval), known by the first.
RELEASED = {"adpool.p": POWER, "fc.weight": "embedding.weight", "fc.bias": "embedding.bias"}


def read_checkpoint(path: str) -> dict[str, torch.Tensor]:
    """Return the state dict in a file or package, out of 'state_dict', 'model' and 'module.'."""
    if path.startswith(PREFIX):
        return read_packaged(path)
    if not Path(path).is_file():
        raise DataError(
            f"{WHERE}: no checkpoint file {path}; give the path of a state dict saved with "
            "torch.save"
        )
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever the bytes provoke
        raise DataError(
            f"{WHERE}: {path} is not a state dict that can be read safely "
            f"({type(error).__name__}); save one with torch.save(model.state_dict(), path)"
        ) from error
    for key in ("state_dict", "model"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(
        isinstance(key, str) and isinstance(value, torch.Tensor) and _is_dense(value)
        for key, value in content.items()
    ):
        raise DataError(f"{WHERE}: {path} has no state dict (names to dense tensors)")
    weights = {key.removeprefix(PARALLEL_PREFIX): value for key, value in content.items()}
    released = RELEASED if next(iter(RELEASED)) in weights else {}
    return {released.get(key, key): value for key, value in weights.items()}


def _is_dense(value: torch.Tensor) -> bool:
    return value.layout == torch.strided and value.device.type == "cpu"


def load_weights(backbone: nn.Module, weights: dict[str, torch.Tensor], source: str) -> None:
    """Load ``weights``; raises ConfigError with every name or shape that does not fit.

    Left out: the classifier, the weights of a head and the power of GeM (``load_head`` and
    ``load_power`` take them), and a distillation token with its position, which sits second.
    Weights of a first convolution over colour are fitted to the backbone's channels as timm does.
    """
    expected = backbone.state_dict()
    dropped = (*_classifier_prefixes(backbone), EMBEDDING, POWER)
    weights = {key: value for key, value in weights.items() if not key.startswith(dropped)}
    if "dist_token" in weights and "dist_token" not in expected:
        weights.pop("dist_token")
        position = weights.get("pos_embed")
        if position is not None and position.dim() == 3:
            weights["pos_embed"] = torch.cat([position[:, :1], position[:, 2:]], dim=1)
    _fit_channels(backbone, weights, expected)
    # Files of old versions lack these counters, which nothing reads at a fixed momentum.
    counters = {k: v for k, v in expected.items() if k.endswith("num_batches_tracked")}
    _load(backbone, {**counters, **weights}, source, "give the weights of this architecture")


def _load(module: nn.Module, weights: dict[str, torch.Tensor], source: str, advice: str) -> None:
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:  # which names every key and shape that does not fit
        raise ConfigError(WHERE, [f"{source}: {error}; {advice}"]) from error


def load_head(head: nn.Module, weights: dict[str, torch.Tensor], source: str) -> None:
    """Load the weights ``embedding.*`` into the linear head, if there are any.

    Raise ConfigError when they do not fit, or there is no head for them.
    """
    own = {k.removeprefix(EMBEDDING): v for k, v in weights.items() if k.startswith(EMBEDDING)}
    if own:
        _load(head, own, source, "set embedding_dim to the width of the file")


def load_power(pooling: nn.Module, weights: dict[str, torch.Tensor], source: str) -> None:
    """Load the power of GeM, if the file has one; raise ConfigError for a network without GeM."""
    if POWER not in weights:
        return
    if "power" not in dict(pooling.named_parameters()) or weights[POWER].numel() != 1:
        words = f"{source} has one power of GeM; set pooling: gem"
        raise ConfigError(WHERE, [words])
    pooling.load_state_dict({"power": weights[POWER].reshape(())})


def _classifier_prefixes(backbone: Any) -> tuple[str, ...]:
    names = backbone.default_cfg.get("classifier") or ()
    names = [names] if isinstance(names, str) else list(names)
    return tuple(f"{name}{suffix}." for name in names for suffix in ("", "_dist"))


def _fit_channels(
    backbone: Any, weights: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]
) -> None:
    from timm.models import adapt_input_conv

    names = backbone.default_cfg.get("first_conv") or ()
    for name in [names] if isinstance(names, str) else names:
        key = f"{name}.weight"
        if (
            key in weights
            and key in expected
            and weights[key].ndim == 4
            and weights[key].shape[1] == 3
        ):
            weights[key] = adapt_input_conv(expected[key].shape[1], weights[key])
