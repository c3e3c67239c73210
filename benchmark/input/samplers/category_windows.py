"""Hard batches of whole classes from pairs of categories, as the FastAP code draws them."""

from dataclasses import dataclass

import numpy as np

from benchmark.core.options import option
from benchmark.input.samplers import SAMPLERS
from benchmark.input.samplers.base import GroupSampler, Window, shares


@SAMPLERS.register("category_windows", display="category windows")
class CategoryWindowsSampler(GroupSampler):
    """Share each batch between the categories of a pair, by windows over their classes.

    For each epoch the classes of a category are put in random order, one after the other with all
    their images. A share is the next window of that row, so that all classes are whole but those
    at the ends of a window. The pairs come in random order, the batches of one pair in a row.
    Source: Cakir et al., CVPR 2019, section 4.2 and supplement A, and their MATLAB code.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(GroupSampler.Config):
        """Options of the sampler."""

        batches_per_pair: int = option(
            5, at_least=1, help="batches drawn from each pair of categories in an epoch"
        )

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size that the categories cannot share equally."""
        return super().check(config, batch_size) or shares(config.nb_categories, 0, batch_size)

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        share = self.batch_size // self.config.nb_categories
        windows = {
            category: Window(classes, generator) for category, classes in self.classes.items()
        }
        groups = self.groups()
        return [
            np.concatenate([windows[category].take(share) for category in groups[number]])
            for number in generator.permutation(len(groups)).tolist()
            for _ in range(self.config.batches_per_pair)
        ]
