"""Hard batches from pairs of categories, as the ROADMAP code draws them."""

from dataclasses import dataclass

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.options import option
from benchmark.input.samplers import SAMPLERS
from benchmark.input.samplers.base import GroupSampler, divisibility, shares, shuffled


@SAMPLERS.register("category_pairs", display="category pairs")
class CategoryPairsSampler(GroupSampler):
    """Share each batch equally between the categories of a pair; every pair has its turns.

    Classes of one category resemble each other, so that a batch holds many hard negatives. A share
    takes classes in random order and m images of each without replacement, with replacement of a
    class of fewer than m. A category of too few classes gives a shorter share. With
    ``samples_per_class`` 0, whole classes are taken as long as they fit. The batches of an epoch
    are shuffled, and the images of each. Idea: Cakir et al., CVPR 2019, supplement A.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(GroupSampler.Config):
        """Options of the sampler."""

        samples_per_class: int = option(
            4, at_least=0, help="images of each class in a batch; 0: all images of the class"
        )

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size that the categories cannot share equally."""
        size = config.samples_per_class
        if size == 1:
            return ["samples_per_class 1 leaves no positive in a batch; give 2 or more, or 0"]
        problems = super().check(config, batch_size)
        problems += divisibility(size, batch_size) if size else []
        return problems or shares(config.nb_categories, size, batch_size)

    def prepare(self) -> None:
        """Index the classes of each category; raise DataError for data that cannot be drawn."""
        super().prepare()
        share = self.batch_size // self.config.nb_categories
        if self.config.samples_per_class:
            return
        large = [number for number, found in self.classes.items() if min(map(len, found)) > share]
        if large:
            raise DataError(
                f"categories {large} have no class that fits into a share of {share} images; "
                "choose a larger batch size, or samples_per_class above 0"
            )

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        made = [
            np.concatenate([self._share(category, generator) for category in group])
            for group in self.groups()
            for _ in range(self.config.batches_per_pair)
        ]
        return shuffled(made, generator)

    def _share(self, category: int, generator: np.random.Generator) -> np.ndarray:
        """Return the images that one category gives to a batch."""
        size, classes = self.config.samples_per_class, self.classes[category]
        free = self.batch_size // self.config.nb_categories
        picks = []
        for number in generator.permutation(len(classes)).tolist():
            images = classes[number]
            wanted = size or len(images)
            if wanted <= free:
                picks.append(generator.choice(images, wanted, replace=len(images) < wanted))
                free -= wanted
            if free < max(size, 1):
                break
        return np.concatenate(picks)
