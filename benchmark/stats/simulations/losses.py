"""Studies that compare losses under common seeds, simulated: the paired tests checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Blocks:
    """A study that compares losses: ``seeds`` runs of each, at ``sizes`` batch sizes.

    sigma     spread of a run besides what all runs of a seed share, in points
    shared    spread of what they share
    log_sd    standard deviation of the logarithm of sigma over losses
    ahead     points by which the last loss is better than all others
    """

    losses: int = 6
    sizes: int = 1
    seeds: int = 3
    sigma: float = 0.5
    shared: float = 1.0
    log_sd: float = 0.0
    ahead: float = 0.0


def draw_blocks(blocks: Blocks, studies: int, rng: np.random.Generator) -> Floats:
    """Return scores (studies, sizes, losses, seeds) in points."""
    shape = (studies, blocks.sizes, blocks.losses)
    spread = blocks.sigma * np.exp(rng.normal(0.0, blocks.log_sd, (*shape, 1)))
    shared = rng.normal(0.0, blocks.shared, (studies, 1, 1, blocks.seeds))
    scores = shared + spread * rng.standard_normal((*shape, blocks.seeds))
    scores[:, :, -1] += blocks.ahead
    return scores
