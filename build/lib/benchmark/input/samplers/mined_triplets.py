"""Triplets of an anchor, a positive and a hard negative, mined from a pool of embeddings."""

from dataclasses import dataclass

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.options import option
from benchmark.core.seeding import derive
from benchmark.input.samplers import SAMPLERS, Sampler

OF_TRIPLET = 3  # images
BLOCK = 512  # rows of distances at a time


@SAMPLERS.register("mined_triplets", display="hard triplets of each epoch")
class MinedTripletsSampler(Sampler):
    """Mine the triplets of an epoch from images that the network embeds when the epoch begins.

    A pool of images is drawn, and all its triplets are compared. An image of the pool is drawn as
    anchor, then one of its ``hardest`` triplets, until there are ``triplets``. Only triplets that
    cost something are drawn, unless none does. The batch size counts triplets, as its authors
    count: a batch has three times as many images, in the order anchor, positive, negative. Source:
    Gordo et al., IJCV 2017, section on hard-negative mining (a pool of 5,000 images, 64 updates
    of 64 triplets, the 25 triplets with the largest loss, margin 0.1).
    """

    pooled = True

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """How many images and triplets take part."""

        pool: int = option(5000, at_least=3, help="images that the network embeds for an epoch")
        triplets: int = option(4096, at_least=1, at_most=10**6, help="triplets of an epoch")
        hardest: int = option(25, at_least=1, help="triplets of an anchor that are drawn from")
        margin: float = option(0.1, above=0.0, help="gap between squared distances that costs 0")

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of an epoch that is no whole number of batches."""
        words = (
            f"{config.triplets} triplets of an epoch are not a whole number of batches of "
            f"{batch_size} triplets; choose a divisor of {config.triplets}"
        )
        return [words] if config.triplets % batch_size else []

    def pool(self, number: int) -> np.ndarray:
        """Return the images (N,) to embed for epoch ``number``."""
        count = min(self.config.pool, len(self.labels))
        generator = np.random.default_rng(derive(self.seed, "pool", number))
        return np.sort(generator.permutation(len(self.labels))[:count])

    def mined(self, number: int, embeddings: np.ndarray) -> list[np.ndarray]:
        """Return the batches of epoch ``number``, given the unit rows (N, D) of its pool."""
        pool = self.pool(number)
        generator = np.random.default_rng(derive(self.seed, "sampler", number))
        found = self._candidates(self.labels[pool], embeddings)
        if not found:
            raise DataError(
                f"a pool of {len(pool)} training images has no triplet: no image has another of "
                "its class and one of a different class; choose a larger pool"
            )
        costing = [(triplets, losses) for triplets, losses in found if losses[0] > 0]
        chosen = []
        for anchor in generator.integers(len(costing or found), size=self.config.triplets):
            triplets, losses = (costing or found)[anchor]
            allowed = max(int((losses > 0).sum()), 1) if costing else len(triplets)
            chosen.append(triplets[generator.integers(allowed)])
        return list(pool[np.array(chosen)].reshape(-1, OF_TRIPLET * self.batch_size))

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of an epoch whose pool is all alike, which no training takes."""
        return self.mined(0, np.zeros((len(self.pool(0)), 1), np.float32))

    def _candidates(
        self, labels: np.ndarray, embeddings: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return for each anchor its hardest triplets (K, 3) and losses (K,), largest first.

        Of an anchor only as many of the farthest positives and nearest negatives can take part.
        """
        keep, found = self.config.hardest, []
        blocks = (embeddings[at : at + BLOCK] for at in range(0, len(embeddings), BLOCK))
        rows = (row for block in blocks for row in 2 - 2 * block @ embeddings.T)
        for anchor, distances in enumerate(rows):  # squared, to all unit rows
            same = labels == labels[anchor]
            negatives = np.flatnonzero(~same)
            same[anchor] = False
            positives = np.flatnonzero(same)
            if not len(positives) or not len(negatives):
                continue
            positives = positives[np.argsort(-distances[positives], kind="stable")[:keep]]
            negatives = negatives[np.argsort(distances[negatives], kind="stable")[:keep]]
            losses = self.config.margin + distances[positives, None] - distances[negatives]
            order = np.argsort(-losses, axis=None, kind="stable")[:keep]
            of_positive, of_negative = np.unravel_index(order, losses.shape)
            triplets = np.stack(
                [np.full(len(order), anchor), positives[of_positive], negatives[of_negative]], 1
            )
            found.append((triplets, losses.ravel()[order]))
        return found
