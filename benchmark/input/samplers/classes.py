"""Batches of images, classes or hard triplets drawn from the whole training set."""

from typing import Literal

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.options import option, options
from benchmark.core.seeding import derive
from benchmark.input.samplers import SAMPLERS, Sampler, shuffled, unshared


@options
class NoOptions:
    """No options."""


class RowSampler(Sampler):
    """Cuts a row of all images into batches; the incomplete last batch is left out."""

    Config = NoOptions

    def row(self, generator: np.random.Generator) -> np.ndarray:
        """Return all images (N,) in random order."""
        return generator.permutation(len(self.labels))

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        row = self.row(generator)
        count = len(row) // self.batch_size
        return list(row[: count * self.batch_size].reshape(count, self.batch_size))


@SAMPLERS.register("random", display="random images")
class RandomSampler(RowSampler):
    """Cut a permutation of all images into batches."""


@SAMPLERS.register("class_windows", display="class windows")
class ClassWindowsSampler(RowSampler):
    """Put all classes in random order, with their images shuffled, and cut the row into batches.

    All classes of a batch are whole, except for those at its ends. The incomplete last batch is
    left out; the MATLAB code of FastAP trains on it, too. Source: Cakir et al., CVPR 2019,
    supplement A.
    """

    def row(self, generator: np.random.Generator) -> np.ndarray:
        """Return all images (N,), class after class."""
        unique, numbers = np.unique(self.labels, return_inverse=True)
        rank = generator.permutation(len(unique))[numbers]
        return np.lexsort((generator.random(len(numbers)), rank))


@SAMPLERS.register("m_per_class", display="m per class")
class MPerClassSampler(Sampler):
    """Take the next m images of several classes until a batch cannot be filled.

    uniform  the classes of each batch are drawn among all that have m images left, so that a class
             meets many others; where classes differ in size, the last batches are of the largest
    walk     each batch takes the first classes of one random order that have m images left; the
             batches are shuffled, and so are the images of a batch (Smooth-AP's and ROADMAP's code)
    drawn    any classes, and any m images of each class, which may repeat (the code of Roth and
             Brattoli)

    A class of fewer than m images is used by ``drawn`` alone.
    """

    @options
    class Config:
        """Options of the sampler."""

        samples_per_class: int = option(
            4, at_least=2, help="images of each class in a batch", search={"among": [2, 4, 8]}
        )
        classes: Literal["uniform", "walk", "drawn"] = option(
            "uniform",
            help="uniform: any classes; walk: the first of one order (the papers' code); drawn: "
            "any classes and images, with replacement",
        )

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size that is not a multiple of m."""
        return unshared(batch_size, config.samples_per_class)

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        size = self.config.samples_per_class
        walk = self.config.classes == "walk"
        order = generator.permutation(len(self.labels))
        order = order[np.argsort(self.labels[order], kind="stable")]
        unique, starts, sizes = np.unique(self.labels[order], return_index=True, return_counts=True)
        if self.config.classes == "drawn":
            shape = len(self.labels) // self.batch_size, self.batch_size // size
            drawn = generator.integers(len(unique), size=shape)[..., None]
            images = starts[drawn] + (sizes[drawn] * generator.random((*shape, size))).astype(int)
            return list(order[images].reshape(-1, self.batch_size))
        chunks = {  # of each class, without a remainder
            label: list(images[: len(images) // size * size].reshape(-1, size))
            for label, images in zip(unique.tolist(), np.split(order, starts[1:]), strict=True)
            if len(images) >= size
        }
        width = self.batch_size // size
        left = np.array(sorted(chunks))
        made = []
        if walk:
            left = generator.permutation(left)
        while len(left) >= width:
            chosen = left[:width] if walk else generator.choice(left, size=width, replace=False)
            made.append(np.concatenate([chunks[label].pop() for label in chosen.tolist()]))
            empty = [label for label in chosen.tolist() if not chunks[label]]
            if empty:
                left = left[~np.isin(left, empty)]
        return shuffled(made, generator) if walk else made


@SAMPLERS.register("all_classes", display="all classes")
class AllClassesSampler(Sampler):
    """Draw images of every class, and fill the batch with any other images.

    Each batch is drawn anew. An epoch has as many batches as with ``random``. Source: Revaud et
    al., ICCV 2019, section 4.2.
    """

    @options
    class Config:
        """Options of the sampler."""

        samples_per_class: int = option(
            2, at_least=1, help="images of each class in a batch at least, or all that it has"
        )

    def prepare(self) -> None:
        """Check that a batch holds all classes."""
        wanted = self.config.samples_per_class
        sizes = np.unique(self.labels, return_counts=True)[1]
        # of images class by class: whether each is one of the first of its class
        self._first = np.concatenate([np.arange(size) < wanted for size in [0, *sizes]])
        if (least := self._first.sum()) > self.batch_size:
            raise DataError(
                f"a batch of {self.batch_size} does not hold samples_per_class {wanted} of all "
                f"{len(sizes)} classes; choose a batch size of {least} or more"
            )

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        made = []
        left = self.batch_size - self._first.sum()
        for _ in range(len(self.labels) // self.batch_size):
            order = generator.permutation(len(self.labels))
            order = order[np.argsort(self.labels[order], kind="stable")]
            others = generator.permutation(order[~self._first])[:left]
            made.append(generator.permutation(np.concatenate([order[self._first], others])))
        return made


@SAMPLERS.register("mined_triplets", display="hard triplets of each epoch")
class MinedTripletsSampler(Sampler):
    """Mine the triplets of an epoch from images that the network embeds when the epoch begins.

    A pool of images is drawn, and all its triplets are compared. Then triplets are drawn, until
    there are ``triplets``: first an image of the pool as anchor, then one of the anchor's
    ``hardest`` triplets. Only triplets that cost something are drawn, unless none does. The batch
    size counts triplets, as the authors do: a batch has three times as many images, in the order
    anchor, positive, negative. Source: Gordo et al., IJCV 2017, section on hard-negative mining (a
    pool of 5,000 images, 64 updates of 64 triplets, the 25 triplets with the largest loss, margin
    0.1).
    """

    pooled = True

    @options
    class Config:
        """How many images and triplets take part."""

        pool: int = option(5000, at_least=3, help="images that the network embeds for an epoch")
        triplets: int = option(4096, at_least=1, at_most=10**6, help="triplets of an epoch")
        hardest: int = option(25, at_least=1, help="triplets of an anchor that are drawn from")
        margin: float = option(0.1, above=0.0, help="gap between squared distances that costs 0")

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of an epoch that is not a whole number of batches."""
        message = (
            f"{config.triplets} triplets of an epoch are not a whole number of batches of "
            f"{batch_size} triplets; choose a divisor of {config.triplets}"
        )
        return [message] if config.triplets % batch_size else []

    @classmethod
    def images_of_epoch(cls, config: Config, batch_size: int, images: int, categories: int) -> int:
        """Return the number of images of the triplets; images of the pool are not counted."""
        return 3 * config.triplets

    def pool(self, number: int) -> np.ndarray:
        """Return the images (N,) to embed for epoch ``number``."""
        count = min(self.config.pool, len(self.labels))
        generator = np.random.default_rng(derive(self.seed, "pool", number))
        return np.sort(generator.permutation(len(self.labels))[:count])

    def mined(self, number: int, embeddings: np.ndarray) -> list[np.ndarray]:
        """Return the batches of epoch ``number``, given the unit rows (N, D) of its pool."""
        pool = self.pool(number)
        generator = np.random.default_rng(derive(self.seed, "sampler", number))
        candidates = self._candidates(self.labels[pool], embeddings)
        if not candidates:
            raise DataError(
                f"a pool of {len(pool)} training images has no triplet: no image has another of "
                "its class and one of a different class; choose a larger pool"
            )
        costing = [(triplets, losses) for triplets, losses in candidates if losses[0] > 0]
        anchors = costing or candidates
        chosen = []
        for anchor in generator.integers(len(anchors), size=self.config.triplets):
            triplets, losses = anchors[anchor]
            allowed = max(int((losses > 0).sum()), 1) if costing else len(triplets)
            chosen.append(triplets[generator.integers(allowed)])
        return list(pool[np.array(chosen)].reshape(-1, 3 * self.batch_size))

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of a pool with equal embeddings; training takes ``mined`` instead."""
        return self.mined(0, np.zeros((len(self.pool(0)), 1), np.float32))

    def _candidates(
        self, labels: np.ndarray, embeddings: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return for each anchor its hardest triplets (K, 3) and losses (K,), largest first.

        Of an anchor only as many of the farthest positives and nearest negatives can take part.
        """
        keep = self.config.hardest
        candidates = []
        blocks = (embeddings[at : at + 512] for at in range(0, len(embeddings), 512))
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
            candidates.append((triplets, losses.ravel()[order]))
        return candidates
