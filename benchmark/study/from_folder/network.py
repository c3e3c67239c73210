"""The network of a folder study: what the study needs to know of it, apart from what the images
decide."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """A backbone and its weights.

    label         name in paths and tables
    weights       where they come from, in words; None for a network trained from scratch
    mean, std     of the pixels that the weights were trained on, per channel
    fixed_side    side of the input that the network demands, pixels; None when it takes any
    """

    backbone: str
    label: str
    weights: str | None = None
    checkpoint: str | None = None
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    fixed_side: int | None = None

    @property
    def pretrained(self) -> bool:
        """Returns whether it starts from weights."""
        return self.weights is not None


# The network of the embedded study: 0.4 million parameters, learns on a CPU.
FROM_SCRATCH = Network("test_resnet", "test_resnet")
