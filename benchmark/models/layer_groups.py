"""Learning rates that fall from the last layers of a backbone to the first."""

from typing import Any

from benchmark.core.errors import ConfigError


def rates_by_layer(backbone: Any, decay: float) -> list[dict[str, Any]]:
    """Return trainable parameters by layer, first layers first, with multiples of the rate.

    The groups are timm's (stem, blocks, last normalisation); the last one learns at the full rate,
    each one before it ``decay`` times as fast (Bao et al., ICLR 2022). Raise ConfigError for a
    backbone without groups.
    """
    from timm.models import group_parameters

    parameters = {name: p for name, p in backbone.named_parameters() if p.requires_grad}
    if decay == 1.0 or not parameters:
        return [{"params": [*parameters.values()], "lr_multiplier": 1.0}]
    if not hasattr(backbone, "group_matcher"):
        words = f"layer_decay  {type(backbone).__name__} has no groups of layers; give 1"
        raise ConfigError("recipe section optimizer", [words])
    layers = group_parameters(backbone, backbone.group_matcher(coarse=False), reverse=True)
    numbers = sorted({layers[name] for name in parameters})
    return [
        {
            "params": [p for name, p in parameters.items() if layers[name] == number],
            "lr_multiplier": decay ** (len(numbers) - 1 - place),
        }
        for place, number in enumerate(numbers)
    ]
